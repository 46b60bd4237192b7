//! Calls that need the approvals of several deciders: who counts, what ends the call, and what drops an approval.

use std::time::Duration;

use tool_runtime::agent::{Input, RunQueue};
use tool_runtime::call::{ClientAnswer, DecisionError, Question};
use tool_runtime::runner::Grant;
use tool_runtime::store::{Clock as _, DecisionRecord, GrantScope, PendingCall};
use tool_runtime::testing::ManualClock;
use tool_runtime::{Event, ToolEffect, ToolExecResult};

use super::*;

const TWO: &str = "[approvals]\nrequired = 2\n";

fn two() -> String {
    format!("{POLICY}\n{TWO}")
}

fn by(name: &str) -> Decider {
    Decider::new(name).tenant("acme")
}

/// The decisions in the chain: the decider, the kind, the number of approvals, and the mismatch of a refusal.
type Told = (String, &'static str, Option<(u32, u32)>, Option<DecisionError>);

fn told(decision: &DecisionRecord) -> Told {
    let decider = decision.decider.as_ref().map(|decider| decider.principal().to_owned()).unwrap_or_default();
    (decider, decision.decision.code(), decision.approvals, decision.mismatch())
}

async fn chain(store: &MemoryStore) -> Vec<Told> {
    let records = store.records(&RecordFilter::run("run-1")).await.expect("records");
    records.iter().filter_map(|sealed| sealed.record.as_decision()).map(told).collect()
}

fn noted(who: &str, number: u32, of: u32) -> Told {
    (who.to_owned(), "approved", Some((number, of)), None)
}

fn refused(who: &str, kind: &'static str, why: DecisionError) -> Told {
    (who.to_owned(), kind, None, Some(why))
}

async fn pending(run: &Run) -> PendingCall {
    run.pending(&CallId::new("person")).await.expect("a store").expect("it waits")
}

async fn approve(run: &Run, decider: &Decider) -> Result<ToolExecResult, ResumeError> {
    run.resume_shown("person", ApprovalDecision::Approve, decider).await
}

/// The arguments with which the call ended.
async fn shown(store: &MemoryStore) -> String {
    record(store, "person").await.shown_arguments().expect("they are read").get().to_owned()
}

#[track_caller]
fn not_allowed(refused: Result<ToolExecResult, ResumeError>, why: DecisionError) {
    match refused {
        Err(ResumeError::NotAllowed(mismatch)) => assert_eq!(mismatch, why),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_runs_once_two_people_approved_it() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(&two(), &store);
    let run = suspended(&runner, ada()).await;
    let question = run.question("person").await;
    assert_eq!(pending(&run).await.approvals(), (&[][..], 2));
    let first = approve(&run, &grace().because("It is due.")).await.expect("it counts");
    assert_eq!(
        (first.outcome(), first.executed(), first.approvals()),
        (Outcome::ApprovalRequired, false, Some((1, 2)))
    );
    assert_eq!(first.question(), Some(&question), "the question is the same");
    let json = serde_json::to_value(&first).expect("a document");
    assert_eq!((&json["approvals"]["noted"], &json["approvals"]["required"]), (&1.into(), &2.into()));
    let read: ToolExecResult = serde_json::from_value(json).expect("the same");
    assert_eq!((read.approvals(), read.question()), (Some((1, 2)), Some(&question)));
    // The same person counts once, under any role and with any reason.
    not_allowed(approve(&run, &grace().role("manager").because("Again.")).await, DecisionError::SameDecider);
    assert_eq!(run.may_decide(&question, &grace()).await.expect_err("approved").code(), "not_allowed");
    run.may_decide(&question, &by("heidi")).await.expect("another person");
    assert_eq!(pending(&run).await.approvals().0.iter().map(Decider::principal).collect::<Vec<_>>(), ["grace"]);
    // In another process.
    let last = runner.run(ada()).resume(&question, ApprovalDecision::Approve, &by("heidi")).await.expect("it counts");
    assert_eq!((last.outcome(), last.approvals()), (Outcome::Ok, None));
    let again = run.resume(&question, ApprovalDecision::Approve, &by("ivan")).await.expect_err("decided");
    assert_eq!(again.code(), "not_pending");
    let expected = [
        noted("grace", 1, 2),
        refused("grace", "approved", DecisionError::SameDecider),
        noted("heidi", 2, 2),
        refused("ivan", "approved", DecisionError::NotPending),
    ];
    assert_eq!(chain(&store).await, expected);
    assert_eq!(store.calls(&RecordFilter::call("run-1", CallId::new("person"))).await.expect("records").len(), 1);
}

#[tokio::test]
async fn whoever_may_not_decide_does_not_count() {
    let store = Arc::new(MemoryStore::new());
    let rules = "[approvals]\nprincipals = [\"grace\", \"heidi\"]\n[approvals.tools.waiting__change]\nrequired = 2\nroles = [\"approver\"]\n";
    let run = suspended(&runner(&format!("{POLICY}\n{rules}"), &store), ada()).await;
    let approver = |name: &str| by(name).role("approver");
    not_allowed(approve(&run, &approver("ada")).await, DecisionError::OwnCall);
    not_allowed(approve(&run, &approver("mallory")).await, DecisionError::DeciderPrincipal);
    not_allowed(approve(&run, &by("grace")).await, DecisionError::DeciderRole);
    assert!(approve(&run, &Decider::new("grace").tenant("other").role("approver")).await.is_err());
    assert_eq!(pending(&run).await.approvals().0, []);
    assert_eq!(approve(&run, &approver("grace")).await.expect("it counts").approvals(), Some((1, 2)));
    assert!(approve(&run, &approver("heidi")).await.expect("it counts").is_ok());
}

#[tokio::test]
async fn one_denial_ends_the_call() {
    for denier in ["heidi", "grace"] {
        let store = Arc::new(MemoryStore::new());
        let run = suspended(&runner(&two(), &store), ada()).await;
        assert!(approve(&run, &grace()).await.expect("it counts").approvals().is_some());
        // A person who approved may change their mind.
        let denied = run.resume_shown("person", ApprovalDecision::Deny(None), &by(denier)).await.expect("it waits");
        assert_eq!((denied.outcome(), denied.executed()), (Outcome::ApprovalDenied, false));
        let expected = [noted("grace", 1, 2), (denier.to_owned(), "denied", None, None)];
        assert_eq!(chain(&store).await, expected);
    }
}

#[tokio::test]
async fn edited_arguments_are_another_question() {
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(&two(), &store), ada()).await;
    let question = run.question("person").await;
    approve(&run, &grace()).await.expect("it counts");
    // The policy denies 13, and the call waits as it was.
    let unlucky = ApprovalDecision::ApproveEdited(r#"{"to":13}"#.into());
    let refused = run.resume(&question, unlucky, &by("heidi")).await.expect("it waits");
    assert_eq!(refused.outcome(), Outcome::ApprovalMismatch);
    assert_eq!(run.question("person").await, question);
    let edited = ApprovalDecision::ApproveEdited(r#"{"to":4}"#.into());
    let first = run.resume(&question, edited.clone(), &by("heidi")).await.expect("it waits");
    assert_eq!(first.approvals(), Some((1, 2)), "the approval of the other arguments is dropped");
    let asked = first.question().cloned().expect("it waits");
    assert_ne!(asked, question);
    let waits = pending(&run).await;
    assert_eq!((waits.question(), waits.shown_arguments.get()), (asked.clone(), r#"{"to":4}"#));
    assert_eq!(waits.approvals().0.iter().map(Decider::principal).collect::<Vec<_>>(), ["heidi"]);
    assert_eq!(waits.changes[0].to_string(), "edited /to: 3 -> 4");
    // The model's own call, from another process, still is this call.
    let again =
        runner(&two(), &store).run(ada()).exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)).await;
    assert_eq!((again.outcome(), again.question()), (Outcome::ApprovalRequired, Some(&asked)));
    let late = run.resume(&question, ApprovalDecision::Approve, &by("ivan")).await.expect("another question");
    assert_eq!(late.error().and_then(|error| error.mismatch), Some(DecisionError::Question));
    // The same arguments again are an approval, and so this person counts once.
    let same = run.resume(&asked, edited, &by("heidi")).await;
    not_allowed(same, DecisionError::SameDecider);
    let last = run.resume(&asked, ApprovalDecision::Approve, &grace()).await.expect("it counts");
    assert_eq!((last.outcome(), last.value().map(tool_runtime::call::JsonText::get)), (Outcome::Ok, Some("4")));
    assert_eq!(last.edits().iter().map(ToString::to_string).collect::<Vec<_>>(), ["edited /to: 3 -> 4"]);
    assert!(last.to_model().contains("A person changed `to`"), "{}", last.to_model());
    assert_eq!(shown(&store).await, r#"{"to":4}"#);
    let edited = |number, of| ("heidi".to_owned(), "edited", Some((number, of)), None);
    let chain = chain(&store).await;
    assert_eq!([chain[0].clone(), chain[2].clone()], [noted("grace", 1, 2), edited(1, 2)]);
    assert_eq!(chain.last(), Some(&noted("grace", 2, 2)));
}

/// A rule on an argument asks for two people. One person cannot raise the argument alone.
#[tokio::test]
async fn an_edit_can_require_more_approvals() {
    let rules = "[[tools.waiting__change.arguments]]\npointer = \"/to\"\nat_most = 9\notherwise = \"require_approval\"\n\
                 [approvals.rules.\"tools.waiting__change.arguments[1]\"]\nrequired = 3\n";
    let store = Arc::new(MemoryStore::new());
    let runner = runner(&format!("{POLICY}\n{rules}"), &store);
    let run = suspended(&runner, ada()).await;
    assert_eq!(pending(&run).await.approvals().1, 1);
    let raised = ApprovalDecision::ApproveEdited(r#"{"to":10}"#.into());
    let first = run.resume_shown("person", raised, &grace()).await.expect("it waits");
    assert_eq!(first.approvals(), Some((1, 3)));
    // Lower arguments still need as many.
    let lowered = ApprovalDecision::ApproveEdited(r#"{"to":2}"#.into());
    assert_eq!(run.resume_shown("person", lowered, &by("heidi")).await.expect("it waits").approvals(), Some((1, 3)));
    assert_eq!(approve(&run, &grace()).await.expect("it counts").approvals(), Some((2, 3)));
    assert!(approve(&run, &by("ivan")).await.expect("it counts").is_ok());
    // Without an edit, the arguments of the model decide.
    for (id, to, required) in [("low", 9, 1), ("high", 10, 3)] {
        let waits = run.exec(ToolCall::text(id, "waiting__change", format!(r#"{{"to":{to}}}"#))).await;
        assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
        let call = run.pending(&CallId::new(id)).await.expect("a store").expect("it waits");
        assert_eq!(call.approvals().1, required, "{id}");
    }
}

#[tokio::test]
async fn one_person_neither_answers_nor_allows_later_calls() {
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(&two(), &store), ada()).await;
    approve(&run, &grace()).await.expect("it counts");
    let answer = ApprovalDecision::Respond("4".into());
    let refused = run.resume_shown("person", answer, &by("heidi")).await.expect("it waits");
    let mismatch = refused.error().and_then(|error| error.mismatch);
    assert_eq!((refused.outcome(), mismatch), (Outcome::ApprovalMismatch, Some(DecisionError::SeveralDeciders)));
    let always = run.remember_shown("person", Grant::allow(GrantScope::Principal), &by("heidi")).await;
    assert!(matches!(always, Err(ResumeError::NotAllowed(DecisionError::SeveralDeciders))), "{always:?}");
    run.remember_shown("person", Grant::deny(GrantScope::Principal), &by("heidi")).await.expect("a denial");
    assert!(approve(&run, &by("heidi")).await.expect("it counts").is_ok());
}

/// A grant that one person gave under another policy allows no call that needs two.
#[tokio::test]
async fn a_grant_of_one_person_is_void_where_two_have_to_approve() {
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(POLICY, &store), ada()).await;
    run.remember_shown("person", Grant::allow(GrantScope::Principal), &grace()).await.expect("a grant");
    let exec = |id: &'static str, policy: String| {
        let run = runner(&policy, &store).run(ada().run_id(id));
        async move { run.exec(ToolCall::text(id, "waiting__change", r#"{"to":3}"#)).await.outcome() }
    };
    assert_eq!(exec("one", POLICY.to_owned()).await, Outcome::Ok);
    assert_eq!(exec("two", two()).await, Outcome::ApprovalRequired);
}

#[tokio::test]
async fn a_call_expires_between_two_approvals() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let policy = ToolPolicy::from_toml(&two()).expect("a policy");
    let runner = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy)
        .approvals(true)
        .store(Arc::clone(&store))
        .clock(Arc::clone(&clock))
        .build()
        .expect("a runner");
    let run = suspended(&runner, ada()).await;
    let expires = pending(&run).await.expires_at;
    approve(&run, &grace()).await.expect("it counts");
    assert_eq!(pending(&run).await.expires_at, expires, "an approval does not prolong it");
    clock.advance(Duration::from_hours(48));
    assert!(clock.now() > expires);
    let late = approve(&run, &by("heidi")).await.expect("it waits");
    assert_eq!((late.outcome(), late.executed()), (Outcome::ApprovalExpired, false));
    assert_eq!(chain(&store).await.last(), Some(&("heidi".to_owned(), "too_late", None, None)));
}

#[tokio::test]
async fn another_policy_is_a_mismatch_also_for_the_second_approval() {
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(&two(), &store), ada()).await;
    approve(&run, &grace()).await.expect("it counts");
    for policy in [POLICY.to_owned(), format!("{POLICY}\n[approvals]\nrequired = 1\n")] {
        let other = runner(&policy, &store).run(ada());
        let refused = approve(&other, &by("heidi")).await.expect("it waits");
        assert_eq!(refused.error().and_then(|error| error.mismatch), Some(DecisionError::Policy));
    }
    assert!(approve(&run, &by("heidi")).await.expect("it counts").is_ok());
}

#[tokio::test]
async fn a_restored_run_and_a_token_carry_the_approvals() {
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(&two(), &store), ada()).await;
    approve(&run, &grace()).await.expect("it counts");
    let snapshot = serde_json::to_string(&run.snapshot().await.expect("a snapshot")).expect("a document");
    // A process with a separate store.
    let elsewhere = Arc::new(MemoryStore::new());
    let snapshot = || serde_json::from_str(&snapshot).expect("a snapshot");
    let restored = runner(&two(), &elsewhere).restore(snapshot(), ada()).await.expect("restored");
    not_allowed(approve(&restored, &grace()).await, DecisionError::SameDecider);
    assert!(approve(&restored, &by("heidi")).await.expect("it counts").is_ok());
    // The record of the last approval names the people whose records are elsewhere.
    let records = elsewhere.records(&RecordFilter::run("run-1")).await.expect("records");
    let last = records.iter().filter_map(|sealed| sealed.record.as_decision()).next_back().expect("a decision");
    let last = serde_json::to_value(last).expect("a document");
    assert_eq!((&last["approvals"], &last["earlier"][0]["principal"]), (&serde_json::json!([2, 2]), &"grace".into()));
    // The store had the call without the approval, which the snapshot brings.
    let earlier = Arc::new(MemoryStore::new());
    let mut before = serde_json::to_value(run.snapshot().await.expect("a snapshot")).expect("a document");
    for waiting in before["waiting"].as_array_mut().expect("a list") {
        waiting["call"].as_object_mut().expect("a call").remove("approvals");
    }
    let runner = runner(&two(), &earlier);
    runner.restore(serde_json::from_value(before).expect("a snapshot"), ada()).await.expect("restored");
    let merged = runner.restore(snapshot(), ada()).await.expect("restored");
    assert_eq!(pending(&merged).await.approvals().0.len(), 1);
    assert!(approve(&merged, &by("heidi")).await.expect("it counts").is_ok());
}

/// Several people approve at the same moment, each in a separate process: none is lost, and the call runs once.
#[tokio::test(flavor = "multi_thread")]
async fn approvals_at_the_same_moment_all_count() {
    for round in 0..16 {
        let store = Arc::new(MemoryStore::new());
        let policy = format!("{POLICY}\n[approvals]\nrequired = 4\n");
        let run = suspended(&runner(&policy, &store), ada()).await;
        let question = run.question("person").await;
        let deciding: Vec<_> = (0..5)
            .map(|number| {
                let (run, question) = (runner(&policy, &store).run(ada()), question.clone());
                let decider = by(&format!("decider-{number}"));
                tokio::spawn(async move { run.resume(&question, ApprovalDecision::Approve, &decider).await })
            })
            .collect();
        let (mut counts, mut ran, mut late) = (Vec::new(), 0, 0);
        for decided in deciding {
            match decided.await.expect("no panic") {
                Ok(result) if result.is_ok() => ran += 1,
                Ok(result) => counts.extend(result.approvals()),
                Err(ResumeError::NotWaiting(_)) => late += 1,
                Err(error) => panic!("{error}"),
            }
        }
        counts.sort_unstable();
        assert_eq!((counts, ran, late), (vec![(1, 4), (2, 4), (3, 4)], 1, 1), "round {round}");
        let calls = store.calls(&RecordFilter::call("run-1", CallId::new("person"))).await.expect("records");
        assert_eq!(calls.len(), 1);
    }
}

#[tokio::test]
async fn a_conversation_tells_who_approved_and_asks_again() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(&two(), &store);
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let sink = move |event: Event| sink.lock().expect("a lock").push(event);
    let script = [ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#), ScriptedTurn::text("Done.")];
    let agent = Agent::new(ScriptedModel::new(script));
    let mut conversation = agent.converse(runner.run(ada().events(sink)));
    let TurnOutcome::Waiting { calls } = conversation.send("Go.").await else { panic!("it waits") };
    assert_eq!((calls[0].required, calls[0].approvals.len()), (2, 0));
    let input = |name: &str| Input::new().decide(&calls[0].question, ApprovalDecision::Approve, &by(name));
    let first = conversation.receive(input("grace")).await.expect("it counts");
    let TurnOutcome::Waiting { calls: after } = first else { panic!("{first:?}") };
    assert_eq!(after[0].question, calls[0].question);
    assert_eq!(after[0].approvals.iter().map(Decider::principal).collect::<Vec<_>>(), ["grace"]);
    let asked = |heard: &[Event]| heard.iter().filter(|event| matches!(event, Event::ToolCallSuspended { .. })).count();
    assert_eq!(asked(&heard.lock().expect("a lock")), 2, "the UI shows the call as waiting again");
    let again = conversation.check(&input("grace")).await.expect_err("the same person");
    assert_eq!(again.code(), "not_allowed");
    let ended = conversation.receive(input("heidi")).await.expect("it counts");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}

/// A queue of a process without tools notes the approvals of a call that an application made itself.
#[tokio::test]
async fn a_queue_counts_like_the_run() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(&two(), &store);
    let run = suspended(&runner, ada()).await;
    let (queue, question) = (RunQueue::new(&runner), run.question("person").await);
    let decide = |name: &'static str| {
        let (queue, question) = (queue.clone(), question.clone());
        async move { queue.decide("run-1", &question, ApprovalDecision::Approve, &by(name)).await }
    };
    let first = decide("grace").await.expect("it counts").expect("noted here");
    assert_eq!(first.approvals(), Some((1, 2)));
    assert_eq!(decide("grace").await.expect_err("the same person").code(), "not_allowed");
    assert!(decide("heidi").await.expect("it counts").expect("carried out here").is_ok());
}

/// A run of a queue, whose call waits for a person.
struct Queued {
    runner: ToolRunner,
    agent: Agent,
    store: Arc<MemoryStore>,
    question: Question,
}

impl Queued {
    async fn new(policy: &str) -> Self {
        let store = Arc::new(MemoryStore::new());
        let runner = runner(policy, &store);
        let calls = ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#);
        let calls = calls.and_call("client", "waiting__cursor", "{}");
        let agent = Agent::new(Arc::new(ScriptedModel::new([calls])));
        let mut conversation = agent.converse(runner.run(ada()));
        assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
        let question = tests::question(&conversation, "person");
        RunQueue::new(&runner).enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
        Self { runner, agent, store, question }
    }

    /// Carries out what was posted.
    async fn take_posts(&self) {
        let queue = RunQueue::new(&self.runner);
        let (mut leased, saved) = queue.take("run-1", Some("acme"), Some("ada"), "web").await.expect("it is free");
        let restored = self.agent.restore(&self.runner, leased.options(ada()), saved).await;
        leased.accept_posts(&mut restored.expect("a conversation")).await.expect("they are taken");
        leased.release(None).await.expect("a store");
    }

    async fn approved_by(&self) -> Vec<String> {
        let run = self.runner.run(ada());
        pending(&run).await.approvals().0.iter().map(|decider| decider.principal().to_owned()).collect()
    }

    fn approval(&self, name: &str) -> Input {
        Input::new().decide(&self.question, ApprovalDecision::Approve, &by(name))
    }
}

/// A process without the tool reads other tables than the effect's. The process that begins the call judges everybody.
#[tokio::test]
async fn an_approval_noted_without_the_tool_counts_only_by_the_rules_of_the_tool() {
    let of_role = "[approvals.effects.state_change]\nrequired = 2\nroles = [\"finance\"]\n";
    let of_own = "[approvals]\nown_calls = true\n[approvals.effects.state_change]\nrequired = 2\nown_calls = false\n";
    for (rules, first, why) in
        [(of_role, "mallory", DecisionError::DeciderRole), (of_own, "ada", DecisionError::OwnCall)]
    {
        let queued = Queued::new(&format!("{POLICY}\n{rules}")).await;
        let policy = ToolPolicy::from_toml("[approvals]\nown_calls = true").expect("a policy");
        let none = ToolCatalog::builder().build().expect("a catalog");
        let without = ToolRunner::builder(none, policy).store(Arc::clone(&queued.store)).build().expect("a runner");
        let queue = RunQueue::new(&without);
        let decide = async |decider: Decider| {
            queue.decide("run-1", &queued.question, ApprovalDecision::Approve, &decider).await.expect("it waits")
        };
        let noted = decide(by(first)).await.expect("noted here");
        assert_eq!(noted.approvals(), Some((1, 2)));
        assert!(decide(by("grace").role("finance")).await.is_none(), "posted");
        queued.take_posts().await;
        assert_eq!(queued.approved_by().await, ["grace"], "{rules}");
        assert!(decide(by("heidi").role("finance")).await.is_none(), "posted");
        queued.take_posts().await;
        assert_eq!(record(&queued.store, "person").await.outcome, Outcome::Ok);
        let expected = [
            (first.to_owned(), "approved", Some((1, 2)), None),
            refused(first, "approved", why),
            noted_by("grace", 1),
            noted_by("heidi", 2),
        ];
        assert_eq!(chain(&queued.store).await, expected);
    }
}

fn noted_by(who: &str, number: u32) -> Told {
    noted(who, number, 2)
}

/// A message is posted, and its approvals are noted, as a whole or not at all.
#[tokio::test]
async fn a_post_that_is_refused_notes_nothing() {
    let queued = Queued::new(&two()).await;
    let queue = RunQueue::new(&queued.runner);
    let post = async |input: Input| queue.post("run-1", Some("acme"), &input).await;
    let answer = || ClientAnswer::value("client", "\"x\"");
    post(Input::new().answer(answer())).await.expect("posted");
    let twice = post(queued.approval("grace").answer(answer())).await;
    assert_eq!(twice.expect_err("answered").code(), "not_pending");
    assert_eq!((queued.approved_by().await, chain(&queued.store).await), (Vec::new(), Vec::new()));
    post(queued.approval("grace")).await.expect("it counts");
    assert_eq!(queued.approved_by().await, ["grace"]);
}

/// A message of the user abandons the calls that wait, so it does not come with an approval that does not suffice.
#[tokio::test]
async fn an_approval_that_does_not_suffice_comes_without_a_message() {
    let queued = Queued::new(&two()).await;
    let queue = RunQueue::new(&queued.runner);
    let post = async |input: Input| queue.post("run-1", Some("acme"), &input).await;
    let edited = ApprovalDecision::ApproveEdited(r#"{"to":4}"#.into());
    let messages = [
        queued.approval("grace").text("And then?"),
        Input::new().decide(&queued.question, edited, &by("grace")).text("And then?"),
    ];
    for message in messages {
        let refused = post(message).await;
        assert!(matches!(refused, Err(ResumeError::NotAllowed(DecisionError::WithMessage))), "{refused:?}");
    }
    let saved = queue.find("run-1", Some("acme")).await.expect("it is there").1;
    let mut conversation = queued.agent.restore(&queued.runner, ada(), saved).await.expect("a conversation");
    let message = || queued.approval("grace").text("And then?");
    let refused = conversation.receive(message()).await;
    assert!(matches!(refused, Err(ResumeError::NotAllowed(DecisionError::WithMessage))), "{refused:?}");
    assert!(conversation.accept(message()).await.is_err());
    assert_eq!(queued.approved_by().await, Vec::<String>::new());
    let kinds = chain(&queued.store).await.into_iter().map(|(_, kind, _, why)| (kind, why));
    let why = Some(DecisionError::WithMessage);
    assert_eq!(kinds.collect::<Vec<_>>(), [("approved", why), ("edited", why), ("approved", why), ("approved", why)]);
    conversation.accept(queued.approval("grace")).await.expect("it counts");
    conversation.accept(queued.approval("heidi").text("And then?")).await.expect("the last one");
    assert_eq!(record(&queued.store, "person").await.outcome, Outcome::Ok);
}

/// White space at the ends of a name does not make a second person.
#[tokio::test]
async fn a_person_has_one_name() {
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(&two(), &store), ada()).await;
    approve(&run, &grace()).await.expect("it counts");
    for name in ["grace ", " grace", "\u{a0}grace", "ada ", " ada"] {
        not_allowed(approve(&run, &by(name)).await, DecisionError::DeciderName);
    }
    let spaced = runner(&two(), &store).run(ada().run_id("run-2").principal("ada "));
    let waits = spaced.exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)).await;
    assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
    not_allowed(approve(&spaced, &by("ada")).await, DecisionError::OwnCall);
}

/// Each policy of a run gives a tool an effect, and both the number and the deciders are those of that effect.
#[tokio::test]
async fn a_policy_judges_by_its_own_effect() {
    let rules = "[approvals.effects.state_change]\nrequired = 2\nroles = [\"finance\"]\n";
    let store = Arc::new(MemoryStore::new());
    let before = runner(&format!("{POLICY}\n{rules}"), &store).run(ada());
    let snapshot = before.snapshot().await.expect("a snapshot");
    let later = format!("{POLICY}\n[tools.waiting__change]\neffect = \"external_side_effect\"\n");
    let run = runner(&later, &store).restore(snapshot, ada()).await.expect("restored");
    let waits = run.exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)).await;
    assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
    assert_eq!(pending(&run).await.approvals().1, 2);
    not_allowed(approve(&run, &by("mallory")).await, DecisionError::DeciderRole);
    assert_eq!(approve(&run, &by("grace").role("finance")).await.expect("it counts").approvals(), Some((1, 2)));
}

#[test]
fn a_number_of_approvals_can_be_reached() {
    let build = |rules: &str| match ToolPolicy::from_toml(&format!("{POLICY}\n{rules}")) {
        Err(error) => Err(error.to_string()),
        Ok(policy) => {
            let catalog = ToolCatalog::collect().expect("a catalog");
            ToolRunner::builder(catalog, policy).approvals(true).build().map(|_| ()).map_err(|error| error.to_string())
        }
    };
    for (rules, expected) in [
        ("[approvals]\nrequired = 0", "needs at least one approval"),
        ("[approvals.tools.waiting__change]\nrequired = 0", "needs at least one approval"),
        ("[approvals.rules.require_approval_for_tools]\nrequired = 0", "needs at least one approval"),
        ("[approvals]\nrequired = 17", "at most 16"),
        ("[approvals]\nrequired = -1", "invalid value"),
        ("[approvals]\nrequired = \"2\"", "invalid type"),
        ("[approvals]\nprincipals = []", "an empty list admits nobody"),
        (
            "[approvals]\nrequired = 3\nprincipals = [\"a\", \"b\"]",
            "3 deciders have to approve, and `principals` names 2",
        ),
        (
            "[approvals]\nprincipals = [\"a\", \"b\"]\n[approvals.tools.waiting__change]\nrequired = 3",
            "`principals` names 2",
        ),
        (
            "[approvals.effects.state_change]\nprincipals = [\"a\"]\n[approvals.tools.waiting__change]\nrequired = 2",
            "`principals` names 1",
        ),
        (
            "[approvals.tools.waiting__change]\nprincipals = [\"a\"]\n\
             [approvals.rules.require_approval_for_tools]\nrequired = 2",
            "2 deciders have to approve, and `principals` names 1",
        ),
        (
            "[approvals.effects.state_change]\nprincipals = [\"a\"]\n\
             [approvals.rules.require_approval_for_tools]\nrequired = 2",
            "2 deciders have to approve, and `principals` names 1",
        ),
        (
            "[tags]\nweb = \"require_approval\"\n[approvals.effects.read_only]\nprincipals = [\"a\"]\n\
             [approvals.rules.\"tags.web\"]\nrequired = 2",
            "2 deciders have to approve, and `principals` names 1",
        ),
        (
            "[labels.minor]\nfrom_run = true\nrequire_approval_for_effects = [\"state_change\"]\n\
             [approvals]\nrequired = 2\n[approvals.tools.waiting__change]\nprincipals = [\"a\", \"b\"]\n\
             [approvals.rules.\"labels.minor.require_approval_for_effects\"]\nrequired = 3",
            "3 deciders have to approve, and `principals` names 2",
        ),
        ("[approvals.rules.require_approval_for_tool]\nrequired = 2", "there is no rule that requires an approval"),
        ("[approvals.rules.\"tools.waiting__change.arguments[0]\"]\nrequired = 2", "there is no rule"),
        ("[approvals.rules.\"tags.web\"]\nrequired = 2", "there is no rule"),
        ("[approvals.rules.require_approval_for_tools]", "missing field `required`"),
    ] {
        let problem = build(rules).expect_err(rules);
        assert!(problem.contains(expected), "{rules}: {problem}");
    }
    for rules in [
        TWO,
        "[approvals]\nrequired = 2\nroles = [\"approver\"]",
        "[approvals]\nrequired = 2\nprincipals = [\"a\", \"b\"]",
        "[approvals.rules.require_approval_for_tools]\nrequired = 2",
        "[tags]\nweb = \"require_approval\"\n[approvals.rules.\"tags.web\"]\nrequired = 2",
        // The rule does not concern the tools of these people.
        "[approvals.tools.waiting__hang]\nprincipals = [\"a\"]\n\
         [approvals.rules.require_approval_for_tools]\nrequired = 2",
        "[approvals]\nprincipals = [\"a\"]\n[approvals.tools.waiting__change]\nprincipals = [\"a\", \"b\"]\n\
         [approvals.rules.require_approval_for_tools]\nrequired = 2",
    ] {
        build(rules).unwrap_or_else(|problem| panic!("{rules}: {problem}"));
    }
    let policy = ToolPolicy::allow(["waiting__change"]).with_approval_for_effects([ToolEffect::StateChange]);
    let two = policy.clone().with_required_approvals(2);
    assert_ne!(policy.revision(), two.revision(), "an approval holds for one number");
    assert_eq!(two.required_approvals("waiting__change", ToolEffect::StateChange, []), 2);
    for number in [0, 17] {
        let catalog = ToolCatalog::collect().expect("a catalog");
        let built =
            ToolRunner::builder(catalog, policy.clone().with_required_approvals(number)).approvals(true).build();
        assert!(built.expect_err("no number").to_string().contains("cannot be required"));
    }
}

const NAMED: &str = "[approvals.tools.waiting__change]\nrequired = 2\nprincipals = [\"ada\", \"grace\"]\n";

async fn asked(run: &Run) -> Outcome {
    run.exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)).await.outcome()
}

/// A call that too few people may decide on would wait until it expires.
#[tokio::test]
async fn a_call_that_too_few_people_may_decide_on_is_denied() {
    let bob = || RunOptions::new().run_id("run-1").principal("bob").tenant("acme").role("editor");
    let own = format!("{NAMED}own_calls = true\n");
    let cases = [
        (NAMED, ada(), Outcome::PolicyDenied),
        (NAMED, bob(), Outcome::ApprovalRequired),
        (own.as_str(), ada(), Outcome::ApprovalRequired),
        ("[approvals]\nprincipals = [\"ada\"]\n", ada(), Outcome::PolicyDenied),
    ];
    for (rules, options, expected) in cases {
        let store = Arc::new(MemoryStore::new());
        let run = runner(&format!("{POLICY}\n{rules}"), &store).run(options);
        assert_eq!(asked(&run).await, expected, "{rules}");
        let waits = store.calls(&RecordFilter::run("run-1")).await.expect("records").is_empty();
        assert_eq!(waits, expected == Outcome::ApprovalRequired, "{rules}");
    }
}

/// Each policy names enough people, and only one of them is named by both.
#[tokio::test]
async fn two_policies_that_name_other_people_deny_the_call() {
    let of = |names: &str| format!("{POLICY}\n[approvals]\nrequired = 2\nprincipals = [{names}]\n");
    let first = runner(&of("'grace', 'heidi'"), &Arc::default()).run(ada());
    let snapshot = moved(&first.snapshot().await.expect("a snapshot"));
    for (names, expected) in
        [("'grace', 'ivan'", Outcome::PolicyDenied), ("'grace', 'heidi', 'ivan'", Outcome::ApprovalRequired)]
    {
        let later = runner(&of(names), &Arc::default()).restore(snapshot.clone(), ada()).await.expect("a run");
        assert_eq!(asked(&later).await, expected, "{names}");
    }
}

#[tokio::test]
async fn an_edit_that_too_few_people_could_approve_is_refused() {
    let rules = "[[tools.waiting__change.arguments]]\npointer = \"/to\"\nat_most = 9\notherwise = \"require_approval\"\n\
                 [approvals]\nprincipals = [\"ada\", \"grace\"]\n\
                 [approvals.rules.\"tools.waiting__change.arguments[1]\"]\nrequired = 2\n";
    let store = Arc::new(MemoryStore::new());
    let run = suspended(&runner(&format!("{POLICY}\n{rules}"), &store), ada()).await;
    let question = run.question("person").await;
    let raised = ApprovalDecision::ApproveEdited(r#"{"to":10}"#.into());
    let refused = run.resume(&question, raised, &grace()).await.expect("it waits");
    assert_eq!(refused.error().and_then(|error| error.mismatch), Some(DecisionError::SeveralDeciders));
    assert_eq!(run.question("person").await, question);
    assert!(approve(&run, &grace()).await.expect("it is decided").is_ok());
}
