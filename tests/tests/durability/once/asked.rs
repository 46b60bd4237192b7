//! Calls with an effect key that need approval. A call whose effect has already happened requests no approval.

use tests::world::{HookAction, HookedStore};
use tool_runtime::agent::{Agent, Conversation, RunQueue, TurnOutcome, Worker};
use tool_runtime::call::Question;
use tool_runtime::store::{PendingCall, RecordFilter, StoreError};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};

use super::*;

const ASKS: &str = "require_approval_for_tools = ['once__refund', 'once__repay', 'once__greet']";

/// Two people have to approve.
const TWO: &str = "require_approval_for_tools = ['once__refund']\n[approvals]\nrequired = 2";

fn person(name: &str) -> Decider {
    Decider::new(name.to_owned()).tenant("acme")
}

impl Rig {
    fn process_with(&self, rules: &str) -> ToolRunner {
        let policy = format!("allowed_tools = ['once__refund', 'once__repay', 'once__greet', 'once__look']\n{rules}");
        self.shared.start(Arc::clone(&self.shared.store) as _, &policy, self.capabilities())
    }

    fn asks(&self, run: &str) -> Run {
        self.process_with(ASKS).run(of(run, "bob"))
    }

    async fn waiting(&self) -> Vec<PendingCall> {
        tests::pending_calls(&*self.shared.store, &RecordFilter::default()).await
    }
}

#[track_caller]
fn asked(result: &ToolExecResult) -> Question {
    assert_eq!(result.outcome(), Outcome::ApprovalRequired, "{}", result.to_model());
    result.question().expect("a question").clone()
}

#[track_caller]
fn is_earlier(result: &ToolExecResult, run: &str, id: &str) {
    assert_eq!((result.outcome(), result.executed()), (Outcome::Ok, false), "{}", result.to_model());
    assert_eq!(result.earlier_call(), Some((run, &CallId::new(id))));
}

#[track_caller]
fn in_progress(result: &ToolExecResult) {
    assert_eq!((result.outcome(), code(result)), (Outcome::Cancelled, Some("in_progress")), "{}", result.to_model());
    assert!(!result.executed());
}

#[tokio::test]
async fn no_person_is_asked_about_an_effect_that_happened_or_happens_now() {
    let rig = Rig::new();
    let running = rig.shared.stuck(rig.run("run-1", "ada").exec(call("once__refund", "c1"))).await;
    in_progress(&rig.asks("run-2").exec(call("once__refund", "c1")).await);
    rig.shared.open(9);
    running.await.expect("it ends");
    let result = rig.asks("run-2").exec(call("once__refund", "c2")).await;
    is_earlier(&result, "run-1", "c1");
    assert!(result.to_model().starts_with("7 of p-1"), "{}", result.to_model());
    // Another tool with the key gets no result and does not ask a person.
    let repaid = rig.asks("run-3").exec(call("once__repay", "c1")).await;
    assert!(repaid.to_model().contains("another tool already caused this effect"), "{}", repaid.to_model());
    assert!(rig.waiting().await.is_empty());
    assert_eq!(rig.shared.effects(), 1);
    let records = rig.shared.closed().await;
    assert_eq!(records.len(), 4, "each call has a record");
    assert!(records.iter().all(|record| record.effect_key.as_deref() == Some("refund:p-1")));
    // Another effect asks.
    let other = ToolCall::text("c3", "once__refund", r#"{"payment_id":"p-2"}"#);
    drop(asked(&rig.asks("run-2").exec(other).await));
}

/// The time to keep ends: the effect may happen again, and a person is asked.
#[tokio::test]
async fn a_person_is_asked_once_the_time_to_keep_is_over() {
    let rig = Rig::new();
    assert!(rig.call(("run-1", "ada"), "once__repay", "c1").await.executed());
    is_earlier(&rig.asks("run-2").exec(call("once__repay", "c1")).await, "run-1", "c1");
    rig.shared.clock.advance(Duration::from_hours(24));
    drop(asked(&rig.asks("run-2").exec(call("once__repay", "c2")).await));
}

/// The first question names the earlier call of unknown outcome, so one approval suffices.
#[tokio::test]
async fn the_first_question_names_an_unknown_outcome() {
    let rig = Rig::new();
    let run = rig.run("run-1", "ada");
    let running = rig.shared.stuck(run.exec(call("once__refund", "c1"))).await;
    run.cancel();
    running.await.expect("it ends");
    let shown = asked(&rig.asks("run-2").exec(call("once__refund", "c1")).await);
    let summary = rig.waiting().await.remove(0).summary.expect("a sentence");
    assert!(summary.contains("unknown outcome: call “c1” of run “run-1”"), "{summary}");
    rig.shared.open(9);
    let result = rig.asks("run-2").resume(&shown, ApprovalDecision::Approve, &person("heidi")).await;
    assert_eq!((result.expect("it waits").outcome(), rig.shared.effects()), (Outcome::Ok, 2));
}

/// A call that waits keeps its question while another call has the effect; its approval gives the result.
#[tokio::test]
async fn a_waiting_call_that_is_made_again_still_waits() {
    let rig = Rig::new();
    rig.shared.open(9);
    let shown = asked(&rig.asks("run-2").exec(call("once__refund", "c1")).await);
    assert!(rig.call(("run-1", "ada"), "once__refund", "c1").await.executed());
    assert_eq!(asked(&rig.asks("run-2").exec(call("once__refund", "c1")).await), shown);
    let result = rig.asks("run-2").resume(&shown, ApprovalDecision::Approve, &person("heidi")).await;
    is_earlier(&result.expect("it waits"), "run-1", "c1");
    let of_call = rig.shared.closed().await.into_iter().filter(|record| *record.run_id == *"run-2");
    assert_eq!((of_call.count(), rig.waiting().await.len()), (1, 0));
}

#[tokio::test]
async fn a_conversation_and_a_worker_go_on_without_a_question() {
    let rig = Rig::new();
    rig.shared.open(9);
    assert!(rig.call(("run-1", "ada"), "once__refund", "c1").await.executed());
    let agent = || {
        let refund = ScriptedTurn::call("c9", "once__refund", r#"{"payment_id":"p-1"}"#);
        Agent::new(ScriptedModel::new([refund, ScriptedTurn::text("Paid before.")]))
    };
    let mut conversation: Conversation = agent().converse(rig.asks("run-2"));
    let ended = conversation.send("Pay back.").await;
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    // A worker.
    let runner = rig.process_with(ASKS);
    let queue = RunQueue::new(&runner);
    let silent = Agent::new(ScriptedModel::new([]));
    let mut conversation = silent.converse(rig.asks("run-3"));
    conversation.accept("Pay back.".into()).await.expect("a message");
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    drop(conversation);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(agent(), rig.process_with(ASKS)).lease(Duration::from_hours(1));
    let running = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    let kept = async || {
        let (_, saved) = queue.find("run-3", Some("acme")).await.expect("it is there");
        serde_json::to_string(&saved).expect("JSON")
    };
    while !kept().await.contains("Paid before.") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stop);
    running.await.expect("no panic").expect("the store is there");
    let records = rig.shared.closed().await;
    let earlier = records.iter().filter(|record| record.earlier_call() == Some(("run-1", &CallId::new("c1"))));
    assert_eq!((earlier.count(), rig.waiting().await.len(), rig.shared.effects()), (2, 0, 1));
}

/// Two calls of one effect wait. While the first one runs, an approval of the second one is refused.
#[tokio::test]
async fn an_approval_that_meets_a_running_call_can_be_repeated() {
    let rig = Rig::new();
    let process = || rig.process_with(TWO);
    let (one, two) = (process().run(of("run-1", "ada")), process().run(of("run-2", "bob")));
    let first = asked(&one.exec(call("once__refund", "c1")).await);
    let second = asked(&two.exec(call("once__refund", "c1")).await);
    let by = async |run: &str, shown: &Question, name: &str| {
        let run = process().run(of(run, if run == "run-1" { "ada" } else { "bob" }));
        run.resume(shown, ApprovalDecision::Approve, &person(name)).await.expect("it waits")
    };
    assert_eq!(by("run-1", &first, "grace").await.approvals(), Some((1, 2)));
    assert_eq!(by("run-2", &second, "grace").await.approvals(), Some((1, 2)));
    let (run, shown) = (process().run(of("run-1", "ada")), first.clone());
    let approve =
        async move { run.resume(&shown, ApprovalDecision::Approve, &person("heidi")).await.expect("it is decided") };
    let running = rig.shared.stuck(approve).await;
    let told = by("run-2", &second, "heidi").await;
    assert_eq!((told.outcome(), code(&told)), (Outcome::ApprovalMismatch, Some("in_progress")), "{}", told.to_model());
    let [waiting] = &rig.waiting().await[..] else { panic!("the second call waits") };
    let (approvals, required) = waiting.approvals();
    assert_eq!((approvals.iter().map(Decider::principal).collect::<Vec<_>>(), required), (vec!["grace"], 2));
    assert_eq!(waiting.question(), second);
    rig.shared.open(9);
    running.await.expect("it ends");
    // The same decision, once the first call has ended.
    is_earlier(&by("run-2", &second, "heidi").await, "run-1", "c1");
    assert_eq!((rig.shared.effects(), rig.waiting().await.len()), (1, 0));
    // Each decision has its record, and the one that changed nothing is refused.
    let records = rig.shared.store.records(&RecordFilter::run("run-2")).await.expect("records");
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
    let told: Vec<_> = decisions.map(|decision| (decision.approvals, decision.refused())).collect();
    assert_eq!(told, [(Some((1, 2)), None), (None, Some(Outcome::Cancelled)), (Some((2, 2)), None)]);
}

/// The conversation still waits, and takes the decision again.
#[tokio::test]
async fn a_conversation_takes_the_decision_again() {
    let rig = Rig::new();
    let refund = ScriptedTurn::call("c1", "once__refund", r#"{"payment_id":"p-1"}"#);
    let agent = Agent::new(ScriptedModel::new([refund, ScriptedTurn::text("Paid back.")]));
    let mut conversation = agent.converse(rig.asks("run-2"));
    let ended = conversation.send("Pay back.").await;
    let TurnOutcome::Waiting { calls } = ended else { panic!("{ended:?}") };
    let running = rig.shared.stuck(rig.run("run-1", "ada").exec(call("once__refund", "c1"))).await;
    let question = calls[0].question.clone();
    let ended = conversation.decide(&question, ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    let TurnOutcome::Waiting { calls } = ended else { panic!("{ended:?}") };
    assert_eq!(calls[0].refused.as_ref().and_then(|refused| refused.tool_code.as_deref()), Some("in_progress"));
    assert_eq!(calls[0].question, question);
    rig.shared.open(9);
    running.await.expect("it ends");
    let ended = conversation.decide(&question, ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!((rig.shared.effects(), rig.waiting().await.len()), (1, 0));
}

/// A worker carries out a posted decision; the second post of the same decision is carried out, too.
#[tokio::test]
async fn a_worker_takes_the_decision_again() {
    let rig = Rig::new();
    let agent = |turns: Vec<ScriptedTurn>| Agent::new(ScriptedModel::new(turns));
    let refund = ScriptedTurn::call("c1", "once__refund", r#"{"payment_id":"p-1"}"#);
    let mut conversation = agent(vec![refund]).converse(rig.asks("run-2"));
    conversation.send("Pay back.").await;
    let question = conversation.waiting().next().expect("it waits").question.clone();
    let runner = rig.process_with(ASKS);
    let queue = RunQueue::new(&runner);
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    drop(conversation);
    let running = rig.shared.stuck(rig.run("run-1", "ada").exec(call("once__refund", "c1"))).await;
    // Works until the chain of the run has this many records.
    let with_worker = async |turns: Vec<ScriptedTurn>, records: usize| {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let worker = Worker::new(agent(turns), rig.process_with(ASKS)).lease(Duration::from_hours(1));
        let working = tokio::spawn(worker.run(async move { drop(stopped.await) }));
        while rig.shared.store.records(&RecordFilter::run("run-2")).await.expect("records").len() < records {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stop);
        working.await.expect("no panic").expect("the store is there");
    };
    queue.decide("run-2", &question, ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    with_worker(vec![], 1).await;
    assert_eq!(rig.waiting().await.len(), 1);
    rig.shared.open(9);
    running.await.expect("it ends");
    queue.decide("run-2", &question, ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    with_worker(vec![ScriptedTurn::text("Paid back.")], 3).await;
    assert_eq!((rig.shared.effects(), rig.waiting().await.len()), (1, 0));
}

/// A repeated call that gets `in_progress` or an earlier result uses no budget and is not a loop.
#[tokio::test]
async fn a_repeated_call_that_does_not_run_uses_up_nothing() {
    let rig = Rig::new();
    let policy = "allowed_tools = ['once__refund']\n[budgets.run]\ncalls = 2";
    let runner = rig.shared.start(Arc::clone(&rig.shared.store) as _, policy, rig.capabilities());
    let running = rig.shared.stuck(rig.run("run-1", "ada").exec(call("once__refund", "c1"))).await;
    let run = runner.run(of("run-2", "bob"));
    for at in 0..5 {
        in_progress(&run.exec(call("once__refund", &format!("a{at}"))).await);
    }
    rig.shared.open(9);
    running.await.expect("it ends");
    for at in 0..5 {
        is_earlier(&run.exec(call("once__refund", &format!("b{at}"))).await, "run-1", "c1");
    }
    // The budget is there for other effects, and the guard counts calls that run.
    let other =
        |id: &str, payment: &str| ToolCall::text(id, "once__refund", format!(r#"{{"payment_id":"{payment}"}}"#));
    assert!(run.exec(other("d1", "p-2")).await.executed());
    assert!(run.exec(other("d2", "p-3")).await.executed());
    assert_eq!(run.exec(other("d3", "p-4")).await.outcome(), Outcome::BudgetExceeded);
}

/// The store does not answer to the intent of a restored run, so the call may have begun. Its record closes a call that
/// the ledger does not know, and the effect still has its key and its time.
#[tokio::test]
async fn a_call_whose_intent_was_lost_keeps_its_key() {
    let rig = Rig::new();
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let hook = move |method: &'static str| match method {
        "update" if failing.swap(false, Ordering::AcqRel) => {
            HookAction::Fail(StoreError::Unavailable("it is away".into()))
        }
        _ => HookAction::Pass,
    };
    let store = Arc::new(HookedStore::new(Arc::clone(&rig.shared.store) as _, hook));
    let runner = rig.process_on(store);
    let snapshot = runner.run(of("run-1", "ada")).snapshot().await.expect("a snapshot");
    let restored = runner.restore(snapshot, of("run-1", "ada")).await.expect("it is restored");
    fails.store(true, Ordering::Release);
    let lost = restored.exec(call("once__repay", "c1")).await;
    assert_eq!((lost.outcome(), rig.shared.effects()), (Outcome::OutcomeUnknown, 0), "{}", lost.to_model());
    drop(asked(&rig.call(("run-2", "ada"), "once__repay", "c1").await));
    let summary = rig.waiting().await.remove(0).summary.expect("a sentence");
    assert!(summary.starts_with("A call with the same effect key has an unknown outcome"), "{summary}");
    let paid = Reconciled::TookEffect("7".to_owned());
    restored.settle(&CallId::new("c1"), paid, &person("heidi")).await.expect("it is settled");
    is_earlier(&rig.call(("run-3", "ada"), "once__repay", "c1").await, "run-1", "c1");
    rig.shared.clock.advance(Duration::from_hours(24));
    assert!(rig.call(("run-4", "ada"), "once__repay", "c1").await.executed(), "the key has its time");
}

/// A call that fails before its effect runs each time, so its repetition is a loop.
#[tokio::test]
async fn a_call_that_runs_each_time_is_a_loop() {
    let rig = Rig::new();
    rig.shared.open(9);
    let run = rig.run("run-1", "ada");
    let failing = |id: &str| ToolCall::text(id, "once__refund", r#"{"payment_id":"p-1","note":"fail"}"#);
    assert_eq!(run.exec(failing("c1")).await.outcome(), Outcome::ExecutionError);
    assert_eq!(run.exec(failing("c2")).await.outcome(), Outcome::ExecutionError);
    assert_eq!(run.exec(failing("c3")).await.outcome(), Outcome::BudgetExceeded);
}
