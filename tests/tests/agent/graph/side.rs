//! Graphs that only read, side by side in one turn.

use super::*;
use tests::DecideShown as _;
use tool_runtime::agent::{Input, SavedConversation};
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;

/// A graph that only reads.
fn reader(turn: impl Fn(&str, usize) -> ScriptedTurn + Send + Sync + 'static) -> Graph {
    Graph::new("researcher", "1", Agent::new(Follows(turn))).description("Researches.").tools(READS)
}

/// Two tasks in one turn, then an answer.
fn asks_twice(_: &str, answered: usize) -> ScriptedTurn {
    if answered > 0 {
        return ScriptedTurn::text("Both.");
    }
    let both = call("p1", "graph__researcher", r#"{"task":"One."}"#);
    both.and_call("p2", "graph__researcher", r#"{"task":"Two."}"#)
}

fn report(summary: &str) -> ScriptedTurn {
    ScriptedTurn::text(format!(r#"{{"summary":"{summary}"}}"#))
}

fn converse(runner: &ToolRunner, rig: &Rig) -> Conversation {
    Agent::new(Follows(asks_twice)).converse(runner.run(rig.options()))
}

/// The results of both tasks, in the order of the history.
fn results(conversation: &Conversation) -> Vec<String> {
    let result = |message: &Message| match message {
        Message::Result(result) => Some(format!("{} {}", result.id, result.content)),
        _ => None,
    };
    conversation.history().iter().filter_map(result).collect()
}

#[tokio::test(start_paused = true)]
async fn parallel_graphs_answer_in_order() {
    let rig = Rig::new();
    // No task gets past its second turn alone, and the first task ends last.
    let runner = rig.runner(
        "parallel = 4",
        reader(|task, answered| match (task, answered) {
            (_, 0) => call("c1", "notes__meet", "{}"),
            ("One.", 1) => call("c2", "notes__list", "{}"),
            ("One.", 2) => call("c3", "notes__page", "{}"),
            (task, _) => report(task),
        }),
    );
    let mut conversation = converse(&runner, &rig);
    let ended = tokio::time::timeout(LONG, conversation.send("Go.")).await.expect("they meet");
    assert!(matches!(ended, TurnOutcome::Answered { text } if text == "Both."));
    assert_eq!(results(&conversation), [r#"p1 {"summary":"One."}"#, r#"p2 {"summary":"Two."}"#]);
    let records = rig.records().await;
    assert_eq!(records.len(), 6);
    let ended: Vec<_> =
        records.iter().map(|record| record.tool_call_id.as_str()).filter(|id| id.starts_with('p')).collect();
    assert_eq!(ended, ["p2", "p1"]);
}

#[tokio::test(start_paused = true)]
async fn a_graph_with_effects_waits_for_its_turn() {
    let rig = Rig::new();
    let graph = reader(|_, answered| if answered == 0 { call("c1", "notes__meet", "{}") } else { report("Met.") });
    // It may have effects, so it never runs at the same time as another.
    let runner =
        rig.runner("parallel = 4", graph.tools(["notes__count", "notes__meet"]).timeout(Duration::from_millis(200)));
    let mut conversation = converse(&runner, &rig);
    let ended = tokio::time::timeout(LONG, conversation.send("Go.")).await.expect("it ends");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    // The first one waits in vain until its time is over. It leaves its seat taken, so that the second one meets it.
    let outcomes = rig.outcomes().await;
    assert_eq!(
        outcomes[..2].iter().map(|(_, outcome)| *outcome).collect::<Vec<_>>(),
        [Outcome::Cancelled, Outcome::OutcomeUnknown]
    );
}

#[tokio::test]
async fn parallel_graphs_share_the_budget_of_the_run() {
    let rig = Rig::new();
    // Two calls are for the graphs themselves, and three for both of their children.
    let graph = reader(|task, answered| match answered {
        0 => call("c1", "notes__meet", "{}"),
        1 => call("c2", "notes__list", "{}"),
        2 => call("c3", "notes__page", "{}"),
        _ => report(task),
    });
    let runner = rig.runner("parallel = 4\n[budgets.run]\ncalls = 5\ntokens = 1_000_000", graph);
    let mut conversation = converse(&runner, &rig);
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Answered { .. }));
    let outcomes = rig.outcomes().await;
    let of = |outcome: Outcome| outcomes.iter().filter(|(_, ended)| *ended == outcome).count();
    assert_eq!((of(Outcome::Ok), of(Outcome::BudgetExceeded)), (5, 3), "{outcomes:?}");
    // All reserved calls were used or given back, and no budget is left for a sixth call.
    let next = conversation.run().exec(ToolCall::text("p3", "notes__list", "{}")).await;
    assert_eq!(next.outcome(), Outcome::BudgetExceeded);
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_run_stops_both() {
    let rig = Rig::new();
    let runner = rig.runner("parallel = 4", reader(|_, _| call("c1", "notes__hang", "{}")));
    let mut conversation = converse(&runner, &rig);
    let run = conversation.run().clone();
    let sending = tokio::spawn(async move { conversation.send("Go.").await });
    let hanging = || async {
        let begun = |event: &Event| match event {
            Event::Graph { event, .. } => matches!(**event, Event::ToolCallStart { .. }),
            _ => false,
        };
        rig.heard.lock().expect("a lock").iter().filter(|event| begun(event)).count()
    };
    while hanging().await < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    run.cancel();
    let ended = tokio::time::timeout(LONG, sending).await.expect("it ends").expect("no panic");
    assert_eq!(ended.code(), "cancelled");
    let outcomes = rig.outcomes().await;
    assert_eq!(outcomes.len(), 4);
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Cancelled), "{outcomes:?}");
}

#[tokio::test]
async fn parallel_graphs_wait_and_each_is_decided_once() {
    let rig = Rig::new();
    let rules = "parallel = 4\nrequire_approval_for_tools = ['notes__page']";
    let turn = |task: &str, answered: usize| if answered == 0 { call("c1", "notes__page", "{}") } else { report(task) };
    let runner = rig.runner(rules, reader(turn));
    let mut conversation = converse(&runner, &rig);
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { calls } if calls.len() == 2));
    let saved = serde_json::to_string(&conversation.save().await.expect("a document")).expect("JSON");
    drop(conversation);

    let saved: SavedConversation = serde_json::from_str(&saved).expect("a document");
    let parent = Agent::new(Follows(asks_twice));
    let runner = rig.runner(rules, reader(turn));
    let mut conversation = parent.restore(&runner, rig.options(), saved).await.expect("restored");
    let bob = Decider::new("bob").tenant("acme");
    let ended = conversation.decide_shown(&"p2".into(), ApprovalDecision::Approve, &bob).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Waiting { ref calls } if calls.len() == 1), "{ended:?}");
    let both = Input::new().decide(&tests::question(&conversation, "p1"), ApprovalDecision::Approve, &bob);
    let ended = conversation.receive(both).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(results(&conversation), [r#"p1 {"summary":"One."}"#, r#"p2 {"summary":"Two."}"#]);
    let outcomes = rig.outcomes().await;
    assert_eq!(outcomes.len(), 4, "{outcomes:?}");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Ok), "{outcomes:?}");
}
