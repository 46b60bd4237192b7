//! A call of a child that needs an approval: the call of the graph waits with it.

use super::*;
use tests::DecideShown as _;
use tests::Shown as _;
use tool_runtime::agent::{Input, SavedConversation};
use tool_runtime::call::{CallId, Decider};
use tool_runtime::runner::ApprovalDecision;

const RULES: &str = "require_approval_for_tools = ['notes__delete']";

fn turns() -> Vec<ScriptedTurn> {
    let two = call("c2", "notes__delete", r#"{"note_id":7}"#).and_call("c3", "notes__delete", r#"{"note_id":8}"#);
    vec![call("c1", "notes__list", "{}"), two]
}

fn asks() -> ScriptedTurn {
    call("p1", "graph__researcher", r#"{"task":"Clean up."}"#)
}

fn bob() -> Decider {
    Decider::new("bob").tenant("acme")
}

fn id(text: &str) -> CallId {
    text.into()
}

#[tokio::test]
async fn a_childs_call_is_shown_decided_and_continued_in_another_process() {
    let rig = Rig::new();
    let run = rig.runner(RULES, researcher(turns())).run(rig.options());
    let mut conversation = Agent::new(ScriptedModel::new([asks()])).converse(run);
    let TurnOutcome::Waiting { calls } = conversation.send("Clean up.").await else { panic!("it waits") };
    assert_eq!(calls[0].rule.as_deref(), Some("require_approval_for_tools"));
    let path = Some("researcher > notes__delete".to_owned());
    let shown = |note| vec![("p1".to_owned(), path.clone(), Some(format!("{{\"note_id\":{note}}}")))];
    assert_eq!(waits(&conversation), shown(7));
    let saved = serde_json::to_string(&conversation.save().await.expect("a document")).expect("JSON");
    assert!(!format!("{calls:?}").contains("note_id"));

    // Another process, with a separate store: it gets only the document.
    for shares in [false, true] {
        let before = rig.effects();
        let other = Rig { store: if shares { Arc::clone(&rig.store) } else { Arc::default() }, ..Rig::new() };
        let rest = vec![ScriptedTurn::text(REPORT)];
        let runner = other.runner(RULES, researcher(rest));
        let saved: SavedConversation = serde_json::from_str(&saved).expect("a document");
        let parent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Cleaned up.")]));
        let mut conversation = parent.restore(&runner, other.options(), saved).await.expect("restored");
        assert_eq!(waits(&conversation), shown(7));
        let ended = conversation.decide_shown(&id("p1"), ApprovalDecision::Approve, &bob()).await.expect("it waits");
        assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
        assert_eq!((other.effects(), waits(&conversation)), (1, shown(8)));
        let deny = ApprovalDecision::Deny(Some("Keep it.".into()));
        let ended = conversation.decide_shown(&id("p1"), deny, &bob()).await.expect("it waits");
        assert!(matches!(ended, TurnOutcome::Answered { ref text } if text == "Cleaned up."), "{ended:?}");
        assert_eq!((other.effects(), rig.effects()), (1, before));
        let outcomes = other.outcomes().await;
        for expected in [("notes__delete", Outcome::Ok), ("notes__delete", Outcome::ApprovalDenied)] {
            assert_eq!(outcomes.iter().filter(|(name, outcome)| (name.as_str(), *outcome) == expected).count(), 1);
        }
        assert_eq!(outcomes.last(), Some(&("graph__researcher".to_owned(), Outcome::Ok)));
        assert!(other.waiting("parent").await.is_empty());
    }
}

/// The sentence of a graph is for a decision on the graph's own call. A call that the graph makes has the sentence of
/// its tool.
#[tokio::test]
async fn a_call_of_the_graph_itself_is_shown_with_its_sentence() {
    let graph = |turns| researcher(turns).summary("Lets the researcher do this: {task}");
    let one = || vec![call("c1", "notes__list", "{}"), call("c2", "notes__delete", r#"{"note_id":7}"#)];
    let parent = || Agent::new(ScriptedModel::new([asks()]));
    let mut waits = Vec::new();
    for rules in ["require_approval_for_tools = ['graph__researcher']", RULES] {
        let rig = Rig::new();
        let turns = if rules == RULES { one() } else { Vec::new() };
        let mut conversation = parent().converse(rig.runner(rules, graph(turns)).run(rig.options()));
        let ended = conversation.send("Clean up.").await;
        let TurnOutcome::Waiting { calls } = ended else { panic!("{rules}: {ended:?}") };
        waits.push((calls[0].path.clone(), calls[0].summary.clone()));
    }
    let sentence = "Lets the researcher do this: “Clean up.”".to_owned();
    assert_eq!(waits[0], (None, Some(sentence)));
    assert_eq!(waits[1], (Some("researcher > notes__delete".to_owned()), None));
    let hash = |graph: Graph| {
        let catalog = ToolCatalog::builder().namespaces(["notes"]).dynamic(graph).build().expect("a catalog");
        catalog.get("graph__researcher").expect("the graph").definition_hash
    };
    assert_ne!(hash(graph(Vec::new())), hash(researcher([])), "what a person reads is in the hash");
    let wrong = researcher([]).summary("Does {other}");
    let refused =
        ToolCatalog::builder().namespaces(["notes"]).dynamic(wrong).build().map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("other"), "{refused}");
}

#[tokio::test]
async fn edited_arguments_and_answers_are_for_the_childs_call() {
    let rig = Rig::new();
    let one = [call("c1", "notes__list", "{}"), call("c2", "notes__delete", r#"{"note_id":7}"#)];
    let run = rig.run(RULES, one.into_iter().chain([ScriptedTurn::text(REPORT)]));
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::ApprovalRequired);
    // Note 9 was not seen, so the call still waits, with the reason.
    let edited = ApprovalDecision::ApproveEdited(r#"{"note_id":9}"#.to_owned());
    assert_eq!(run.resume_shown("p1", edited, &bob()).await.expect("it waits").outcome(), Outcome::ApprovalRequired);
    let snapshot = run.snapshot().await.expect("a snapshot");
    let graph = snapshot.waiting().next().and_then(|call| call.graph.clone()).expect("a graph");
    assert!(graph.refused.is_some());
    assert_eq!(rig.effects(), 0);
    let edited = ApprovalDecision::ApproveEdited(r#"{"note_id":8}"#.to_owned());
    assert_eq!(run.resume_shown("p1", edited, &bob()).await.expect("it waits").outcome(), Outcome::Ok);
    assert_eq!(rig.effects(), 1);
    assert!(run.resume_shown("p1", ApprovalDecision::Approve, &bob()).await.is_err());

    let rig = Rig::new();
    let one = [call("c1", "notes__list", "{}"), call("c2", "notes__delete", r#"{"note_id":7}"#)];
    let run = rig.run(RULES, one.into_iter().chain([ScriptedTurn::text(REPORT)]));
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::ApprovalRequired);
    let answer = ApprovalDecision::Respond("7".to_owned());
    assert_eq!(run.resume_shown("p1", answer, &bob()).await.expect("it waits").outcome(), Outcome::Ok);
    assert_eq!(rig.effects(), 0);
}

#[tokio::test]
async fn a_graph_that_nobody_continues_says_what_may_be_done() {
    for begun in [false, true] {
        let rig = Rig::new();
        let first = if begun { call("c1", "notes__count", r#"{"at":1}"#) } else { call("c1", "notes__panick", "{}") };
        let rules = "require_approval_for_tools = ['notes__hang']";
        let run = rig.runner(rules, researcher([first, call("c2", "notes__hang", "{}")])).run(rig.options());
        let parent = Agent::new(ScriptedModel::new([asks(), ScriptedTurn::text("Very well.")]));
        let mut conversation = parent.converse(run);
        assert!(matches!(conversation.send("Clean up.").await, TurnOutcome::Waiting { .. }));
        // A message abandons the waiting calls, in the child too.
        let ended = conversation.receive(Input::new().text("Never mind.")).await.expect("a message");
        assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
        let outcomes = rig.outcomes().await;
        let expected = if begun { Outcome::OutcomeUnknown } else { Outcome::Cancelled };
        assert!(outcomes.contains(&("graph__researcher".to_owned(), expected)), "{outcomes:?}");
        assert!(outcomes.contains(&("notes__hang".to_owned(), Outcome::Cancelled)), "{outcomes:?}");
        assert_eq!(outcomes.len(), 3);
    }
}

#[tokio::test]
async fn many_approvals_are_one_call() {
    let rig = Rig::new();
    let ids = (0..6).map(|at| call(&format!("c{at}"), "notes__count", &format!("{{\"at\":{at}}}")));
    let run = rig.run("require_approval_for_tools = ['notes__count']", ids.chain([ScriptedTurn::text(REPORT)]));
    let mut result = run.exec(ask("p1")).await;
    for _ in 0..6 {
        assert_eq!(result.outcome(), Outcome::ApprovalRequired);
        result = run.resume_shown("p1", ApprovalDecision::Approve, &bob()).await.expect("it waits");
    }
    // The loop guard does not treat them as repetitions.
    assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 6));
    assert!(!text(&result).contains("same call"));
}

#[tokio::test]
async fn racing_decisions_continue_a_graph_once() {
    let rig = Rig::new();
    let one = [call("c1", "notes__count", r#"{"at":1}"#), ScriptedTurn::text(REPORT)];
    let run = rig.run("require_approval_for_tools = ['notes__count']", one);
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::ApprovalRequired);
    let bob = bob();
    let decide = || run.resume_shown("p1", ApprovalDecision::Approve, &bob);
    let (one, other) = tokio::join!(decide(), decide());
    assert_eq!([one.is_ok(), other.is_ok()].iter().filter(|ok| **ok).count(), 1, "{one:?} {other:?}");
    assert_eq!(rig.effects(), 1);
}

#[tokio::test]
async fn who_may_decide_follows_from_the_childs_tool() {
    let rig = Rig::new();
    let one = [call("c1", "notes__count", r#"{"at":1}"#), ScriptedTurn::text(REPORT)];
    let run = rig.run("require_approval_for_tools = ['notes__count']", one);
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::ApprovalRequired);
    // Nobody may decide on their own calls, and after such an attempt the graph still waits.
    let own = Decider::new("ada").tenant("acme");
    assert!(run.resume_shown("p1", ApprovalDecision::Approve, &own).await.is_err());
    assert_eq!((rig.effects(), rig.waiting("parent").await.len()), (0, 1));
    assert_eq!(
        run.resume_shown("p1", ApprovalDecision::Approve, &bob()).await.expect("it waits").outcome(),
        Outcome::Ok
    );
}

#[tokio::test]
async fn a_graph_that_nobody_decides_expires_with_its_call() {
    for begun in [false, true] {
        let rig = Rig::new();
        let first = if begun { call("c1", "notes__count", r#"{"at":1}"#) } else { call("c1", "notes__none", "{}") };
        let run = rig.run("require_approval_for_tools = ['notes__hang']", [first, call("c2", "notes__hang", "{}")]);
        assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::ApprovalRequired);
        let expected = if begun { Outcome::OutcomeUnknown } else { Outcome::ApprovalExpired };
        assert_eq!(run.expire_shown("p1").await.expect("it waits").outcome(), expected);
        assert!(rig.outcomes().await.contains(&("notes__hang".to_owned(), Outcome::Cancelled)));
    }
}

/// The call of a child needs two people. They are counted on the call of the graph, and each of their approvals is in
/// the chain of the child, too.
#[tokio::test]
async fn a_childs_call_that_needs_two_people_waits_for_both() {
    let rules = "require_approval_for_tools = ['notes__count']\n[approvals.tools.notes__count]\nrequired = 2";
    for shares in [false, true] {
        let rig = Rig::new();
        let one = [call("c1", "notes__count", r#"{"at":1}"#)];
        let run = rig.run(rules, one);
        let waits = run.exec(ask("p1")).await;
        let question = waits.question().cloned().expect("it waits");
        let first = run.resume(&question, ApprovalDecision::Approve, &bob()).await.expect("it counts");
        assert_eq!((first.approvals(), first.question(), rig.effects()), (Some((1, 2)), Some(&question), 0));
        assert!(run.resume(&question, ApprovalDecision::Approve, &bob()).await.is_err(), "the same person");
        for decision in
            [ApprovalDecision::Respond("7".to_owned()), ApprovalDecision::ApproveEdited(r#"{"at":2}"#.to_owned())]
        {
            let alone = run.resume(&question, decision, &carol()).await.expect("it waits");
            let mismatch = alone.error().and_then(|error| error.mismatch);
            assert_eq!(mismatch.map(tool_runtime::call::DecisionError::code), Some("several_deciders"));
        }
        // Another process, which may have a separate store.
        let other = Rig { store: if shares { Arc::clone(&rig.store) } else { Arc::default() }, ..Rig::new() };
        let snapshot = run.snapshot().await.expect("a snapshot");
        let runner = other.runner(rules, researcher([ScriptedTurn::text(REPORT)]));
        let run = runner.restore(snapshot, other.options()).await.expect("restored");
        let last = run.resume(&question, ApprovalDecision::Approve, &carol()).await.expect("it counts");
        assert_eq!((last.outcome(), other.effects()), (Outcome::Ok, 1));
        let records = other.store.records(&RecordFilter::default()).await.expect("records");
        let decided = |tool: &str| {
            let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
            let decisions = decisions.filter(|decision| decision.tool.as_str() == tool && decision.refused().is_none());
            decisions.map(|decision| decision.approvals).collect::<Vec<_>>()
        };
        assert_eq!(decided("notes__count"), [Some((1, 2)), Some((2, 2))]);
        let of_graph = if shares { vec![Some((1, 2)), Some((2, 2))] } else { vec![Some((2, 2))] };
        assert_eq!(decided("graph__researcher"), of_graph);
    }
}

/// One person edits the arguments of a child's call, so that it needs two. The editor counts.
#[tokio::test]
async fn an_edit_of_a_childs_call_that_raises_the_number_counts_once() {
    let rules = "require_approval_for_tools = ['notes__count']\n[[tools.notes__count.arguments]]\npointer = '/at'\nat_most = 5\n\
                 otherwise = 'require_approval'\n[approvals.rules.'tools.notes__count.arguments[0]']\nrequired = 2";
    let rig = Rig::new();
    let run = rig.run(rules, [call("c1", "notes__count", r#"{"at":1}"#), ScriptedTurn::text(REPORT)]);
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::ApprovalRequired);
    let edited = ApprovalDecision::ApproveEdited(r#"{"at":9}"#.to_owned());
    let first = run.resume_shown("p1", edited, &bob()).await.expect("it waits");
    assert_eq!((first.outcome(), rig.effects()), (Outcome::ApprovalRequired, 0));
    let waits = rig.waiting("parent").await.remove(0);
    assert_eq!((waits.approvals().0.len(), waits.approvals().1), (1, 2));
    assert!(run.resume_shown("p1", ApprovalDecision::Approve, &bob()).await.is_err(), "the same person");
    let last = run.resume_shown("p1", ApprovalDecision::Approve, &carol()).await.expect("it counts");
    assert_eq!((last.outcome(), rig.effects()), (Outcome::Ok, 1));
}

fn carol() -> Decider {
    Decider::new("carol").tenant("acme")
}
