//! A call that waits because an earlier call of its effect had an unknown outcome, which becomes known meanwhile. An
//! approval of the old question does not let a second effect happen.

use std::sync::PoisonError;

use tool_runtime::agent::{
    Agent, Conversation, Durable, Input, SavedConversation, Step, StepError, StepFuture, TurnOutcome, Worker,
};
use tool_runtime::call::{DecisionError, Question};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::PendingCall;
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};

use super::*;

const BILL: &str = r#"{"bill":"b-1"}"#;

fn question(result: &ToolExecResult) -> Question {
    assert_eq!(result.outcome(), Outcome::ApprovalRequired, "{}", result.to_model());
    result.question().expect("a question").clone()
}

fn paid() -> Reconciled<&'static str> {
    Reconciled::TookEffect(r#"{"number":7,"inner":"b-1"}"#)
}

impl Rig {
    async fn pending(&self, run: &str, id: &str) -> PendingCall {
        self.run(run).pending(&CallId::new(id)).await.expect("a store").expect("it waits")
    }

    async fn approve(&self, run: &str, question: &Question, by: &str) -> Result<ToolExecResult, &'static str> {
        let decided = self.run(run).resume(question, ApprovalDecision::Approve, &person(by)).await;
        decided.map_err(|error| error.code())
    }

    async fn refused(&self) -> Vec<DecisionError> {
        records(&self.shared.store).await.iter().filter_map(DecisionRecord::mismatch).collect()
    }

    /// Two calls with the same arguments that ran at the same time, both of unknown outcome.
    async fn two_unknown(&self) {
        let runs = [self.run("run-1"), self.run("run-2")];
        let first = self.shared.stuck(runs[0].exec(call("settled__pay", "c1"))).await;
        let second = self.shared.stuck(runs[1].exec(call("settled__pay", "c1"))).await;
        runs.iter().for_each(Run::cancel);
        first.await.expect("it ends");
        second.await.expect("it ends");
    }
}

fn summary(call: &PendingCall) -> &str {
    call.summary.as_deref().expect("a sentence")
}

#[tokio::test]
async fn an_approval_from_before_the_outcome_was_known_does_not_count() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__pay", "c1").await;
    let shown = question(&exec(&rig, "run-2", "settled__pay", "c2").await);
    assert_eq!(rig.settle("run-1", "c1", paid(), "grace").await, Ok(Outcome::Ok));
    rig.shared.open(9);
    assert_eq!(rig.approve("run-2", &shown, "heidi").await.map(|_| ()), Err("not_allowed"));
    assert_eq!((rig.shared.effects(), rig.refused().await), (1, vec![DecisionError::Question]));
    let anew = rig.pending("run-2", "c2").await;
    assert_ne!(anew.question(), shown);
    assert_eq!(
        summary(&anew),
        "A call with the same arguments had an unknown outcome, and took effect: call “c1” of run “run-1” \
         (2026-01-01T00:00:00Z, cancelled)."
    );
    // Made again, it is the same waiting call.
    assert_eq!(question(&exec(&rig, "run-2", "settled__pay", "c2").await), anew.question());
    // A person who was shown that it took effect may let it happen again.
    let result = rig.approve("run-2", &anew.question(), "heidi").await.expect("it waits");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 2));
}

/// The approver accepted a greater risk.
#[tokio::test]
async fn an_approval_stands_if_the_earlier_call_did_not_happen() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__pay", "c1").await;
    let shown = question(&exec(&rig, "run-2", "settled__pay", "c2").await);
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await, Ok(Outcome::Cancelled));
    rig.shared.open(9);
    let result = rig.approve("run-2", &shown, "heidi").await.expect("it waits");
    assert_eq!((result.outcome(), rig.shared.effects(), rig.refused().await), (Outcome::Ok, 2, vec![]));
}

#[tokio::test]
async fn of_several_earlier_calls_each_has_its_outcome() {
    let rig = Rig::new();
    rig.two_unknown().await;
    let shown = question(&exec(&rig, "run-3", "settled__pay", "c3").await);
    // One took effect, and the other is unknown.
    assert_eq!(rig.settle("run-2", "c1", paid(), "grace").await, Ok(Outcome::Ok));
    rig.shared.open(9);
    assert_eq!(rig.approve("run-3", &shown, "heidi").await.map(|_| ()), Err("not_allowed"));
    let second = rig.pending("run-3", "c3").await;
    let named = |run: &str| format!("call “c1” of run “{run}” (2026-01-01T00:00:00Z, cancelled)");
    let unknown = format!("A call with the same arguments has an unknown outcome: {}.", named("run-1"));
    let known = format!("A call with the same arguments had an unknown outcome, and took effect: {}.", named("run-2"));
    assert_eq!(summary(&second), format!("{unknown} {known}"));
    // The other did not happen: an approval of this question is still valid.
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await, Ok(Outcome::Cancelled));
    let result = rig.approve("run-3", &second.question(), "heidi").await.expect("it waits");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 3));
}

#[tokio::test]
async fn a_new_question_names_those_that_did_not_happen_too() {
    let rig = Rig::new();
    rig.two_unknown().await;
    let shown = question(&exec(&rig, "run-3", "settled__pay", "c3").await);
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await, Ok(Outcome::Cancelled));
    assert_eq!(rig.settle("run-2", "c1", paid(), "grace").await, Ok(Outcome::Ok));
    rig.shared.open(9);
    assert_eq!(rig.approve("run-3", &shown, "heidi").await.map(|_| ()), Err("not_allowed"));
    let anew = rig.pending("run-3", "c3").await;
    let sentence = summary(&anew);
    assert!(sentence.contains("had an unknown outcome, and took effect: call “c1” of run “run-2”"), "{sentence}");
    assert!(sentence.contains("had an unknown outcome, and did not happen: call “c1” of run “run-1”"), "{sentence}");
}

/// A purge removed the settled call. The store does not know whether it took effect.
#[tokio::test]
async fn a_settled_call_that_was_purged_asks_anew() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__pay", "c1").await;
    let shown = question(&exec(&rig, "run-2", "settled__pay", "c2").await);
    assert_eq!(rig.settle("run-1", "c1", paid(), "grace").await, Ok(Outcome::Ok));
    rig.shared.clock.advance(std::time::Duration::from_hours(1));
    let retention = Retention::new(&*rig.shared.store, person("ivan"));
    assert_eq!(retention.run("run-1").purge(std::time::Duration::ZERO).await.expect("it purges").runs, 1);
    assert_eq!(rig.approve("run-2", &shown, "heidi").await.map(|_| ()), Err("not_allowed"));
    let anew = rig.pending("run-2", "c2").await;
    assert!(summary(&anew).contains("and its record is no longer in the store: call “c1”"), "{}", summary(&anew));
    rig.shared.open(9);
    let result = rig.approve("run-2", &anew.question(), "heidi").await.expect("it waits");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 2));
}

/// A conversation whose call waits as a twin, and whose model then gives this answer.
async fn conversing(rig: &Rig, then: Option<ScriptedTurn>) -> Conversation {
    rig.unknown("run-1", "settled__pay", "c1").await;
    let turns: Vec<_> = [ScriptedTurn::call("c2", "settled__pay", BILL)].into_iter().chain(then).collect();
    let mut conversation = Agent::new(ScriptedModel::new(turns)).converse(rig.run("run-2"));
    let ended = conversation.send("Pay.").await;
    assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    conversation
}

fn only(conversation: &Conversation) -> Question {
    let mut waiting = conversation.waiting();
    waiting.next().expect("it waits").question.clone()
}

#[tokio::test]
async fn a_conversation_asks_anew() {
    let rig = Rig::new();
    let mut conversation = conversing(&rig, Some(ScriptedTurn::text("Paid."))).await;
    let shown = only(&conversation);
    assert_eq!(rig.settle("run-1", "c1", paid(), "grace").await, Ok(Outcome::Ok));
    rig.shared.open(9);
    let ended = conversation.decide(&shown, ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    let TurnOutcome::Waiting { calls } = ended else { panic!("{ended:?}") };
    assert_eq!(calls[0].refused.as_ref().and_then(|refused| refused.mismatch), Some(DecisionError::Question));
    assert!(calls[0].summary.as_deref().is_some_and(|summary| summary.contains("took effect")));
    assert_eq!((only(&conversation), rig.shared.effects()), (rig.pending("run-2", "c2").await.question(), 1));
    let anew = only(&conversation);
    let ended = conversation.decide(&anew, ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(rig.shared.effects(), 2);
}

/// A decision that was posted before the outcome became known, and is carried out by a worker after that.
#[tokio::test]
async fn a_worker_asks_anew() {
    let rig = Rig::new();
    let conversation = conversing(&rig, None).await;
    let shown = only(&conversation);
    let runner = rig.process();
    let queue = RunQueue::new(&runner);
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    drop(conversation);
    queue.decide("run-2", &shown, ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    assert_eq!(rig.settle("run-1", "c1", paid(), "grace").await, Ok(Outcome::Ok));
    rig.shared.open(9);
    let until = async |turns: Vec<ScriptedTurn>, happens: &dyn Fn(&SavedConversation) -> bool| {
        let worker = Worker::new(Agent::new(ScriptedModel::new(turns)), rig.process());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let worker = worker.lease(std::time::Duration::from_hours(1));
        let running = tokio::spawn(worker.run(async move { drop(stopped.await) }));
        while !happens(&queue.find("run-2", Some("acme")).await.expect("it is there").1) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        drop(stop);
        running.await.expect("no panic").expect("the store is there");
    };
    until(vec![], &|saved| saved.waiting().any(|call| call.question != shown)).await;
    assert_eq!((rig.shared.effects(), rig.refused().await), (1, vec![DecisionError::Question]));
    let anew = rig.pending("run-2", "c2").await;
    assert!(summary(&anew).contains("took effect"), "{}", summary(&anew));
    queue.decide("run-2", &anew.question(), ApprovalDecision::Approve, &person("heidi")).await.expect("it waits");
    until(vec![ScriptedTurn::text("Paid.")], &|saved| saved.waiting().next().is_none()).await;
    assert_eq!(rig.shared.effects(), 2);
}

/// An engine: its journal has the documents of its units.
struct Journal<'r> {
    units: std::sync::Mutex<Vec<String>>,
    agent: Agent,
    rig: &'r Rig,
}

#[async_trait::async_trait]
impl Durable for Journal<'_> {
    type Error = StepError;

    async fn unit(&self, _: &str, work: StepFuture<'_>) -> Result<SavedConversation, StepError> {
        let saved = work.await?;
        let kept = serde_json::to_string(&saved).expect("JSON");
        self.units.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        Ok(saved)
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, StepError> {
        let options = RunOptions::new().run_id("run-2").principal("ada").tenant("acme");
        self.agent.restore(&self.rig.process(), options, saved).await.map_err(StepError::other)
    }
}

#[tokio::test]
async fn an_engine_asks_anew() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__pay", "c1").await;
    let turns = [ScriptedTurn::call("c2", "settled__pay", BILL), ScriptedTurn::text("Paid.")];
    let journal =
        Journal { units: std::sync::Mutex::default(), agent: Agent::new(ScriptedModel::new(turns)), rig: &rig };
    let mut conversation = journal.agent.converse(rig.run("run-2"));
    conversation.accept_on(&journal, "message", Input::from("Pay.")).await.expect("a message");
    let mut questions = Vec::new();
    loop {
        match conversation.step_on(&journal).await.expect("a step") {
            Step::Waits(calls) => {
                if questions.is_empty() {
                    assert_eq!(rig.settle("run-1", "c1", paid(), "grace").await, Ok(Outcome::Ok));
                    rig.shared.open(9);
                }
                questions.push((calls[0].question.clone(), rig.shared.effects()));
                let decided = Input::new().decide(&calls[0].question, ApprovalDecision::Approve, &person("heidi"));
                let unit = format!("decision {}", questions.len());
                conversation.accept_on(&journal, &unit, decided).await.expect("a decision");
            }
            Step::Ended(_) => break,
            _ => {}
        }
    }
    let [(first, 1), (second, 1)] = &questions[..] else { panic!("{questions:?}") };
    assert_ne!(first, second);
    assert_eq!(rig.shared.effects(), 2);
}
