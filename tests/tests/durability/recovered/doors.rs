//! Interrupted calls that need no approval, in each way to continue their run.

use tool_runtime::ToolCall;
use tool_runtime::agent::{Durable, SavedConversation, StepError, StepFuture, TurnOutcome};
use tool_runtime::call::JsonText;
use tool_runtime::runner::RunSnapshot;

use super::*;

/// A conversation that is restored from the document before the call.
#[test]
fn a_restored_conversation() {
    every(|rig, dies| {
        is_restored(&rig);
        rig.holds("restored", dies);
    });
}

fn is_restored(rig: &Rig) {
    let saved = died_in_a_step(rig);
    let ended = rig.later(async {
        let mut conversation = restored(rig, &saved).await;
        assert!(matches!(conversation.step().await, Step::Ran));
        conversation.step().await;
        conversation.step().await
    });
    assert!(matches!(ended, Step::Ended(TurnOutcome::Answered { .. })), "{ended:?}");
}

/// A way to continue a run whose process died in its call.
pub(super) type Door = (&'static str, fn(&Rig));

pub(super) const DOORS: [Door; 3] = [("restored", is_restored), ("worker", is_taken_over), ("engine", is_driven_again)];

/// The model continues, and the call has its one record.
#[test]
fn a_look_that_hangs_or_panics_leaves_the_outcome_unknown_through_each_door() {
    for looks in [Looks::Hangs, Looks::Panics] {
        for (name, door) in DOORS {
            let rig = Rig::new("keyed", Dies::After);
            *of(&rig.there.looks) = looks;
            door(&rig);
            assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None), "{name}: {looks:?}");
            assert_eq!(rig.effects(), [1], "{name}: {looks:?}");
        }
    }
}

/// The runner trusts the answer of the tool. The answer ends this call only: it has one record, with its own id and
/// arguments, and its effect does not happen again. `reconcile` received the key of this call.
#[test]
fn a_look_that_answers_for_another_key_ends_its_own_call_through_each_door() {
    for (name, door) in DOORS {
        let rig = Rig::new("keyed", Dies::After);
        *of(&rig.there.looks) = Looks::Another;
        // A call of another run is open, with its own effect.
        let other = rig.runner().run(RunOptions::new().run_id("other").principal("ada").tenant("acme"));
        let other = other.exec(ToolCall::text("c", rig.name(), r#"{"what":"food"}"#));
        rig.dies(async move { drop(other.await) });
        let others: Vec<_> = of(&rig.there.effects).keys().cloned().collect();
        *of(&rig.there.fate) = Some(Dies::After);
        door(&rig);
        assert_eq!(rig.ended(), (Outcome::Ok, None, Some(r#""another effect""#.to_owned())), "{name}");
        assert_eq!(rig.effects(), [1, 1], "{name}");
        let looked = of(&rig.there.looked).clone();
        assert!(!looked.is_empty() && !looked.contains(&others[0]), "{name}: its own key");
        let records = runtime().block_on(rig.store.calls(&RecordFilter::default())).expect("records");
        assert_eq!((&*records[0].run_id, records[0].tool_call_id.as_str()), ("run", "c"), "{name}");
        // The other call is still open, and its own tool ends it.
        *of(&rig.there.looks) = Looks::Normally;
        let swept = runtime().block_on(async {
            rig.runner().sweep().await.expect("swept");
            rig.store.calls(&RecordFilter::run("other")).await.expect("records")
        });
        assert_eq!((swept.len(), swept[0].outcome), (1, Outcome::Ok), "{name}");
        assert_eq!(swept[0].result.as_ref().map(JsonText::get), Some(r#""found food""#), "{name}");
    }
}

/// The user has written something else meanwhile: the call that began is settled before the model reads it.
#[test]
fn a_restored_conversation_with_a_new_message() {
    every(|rig, dies| {
        let saved = died_in_a_step(&rig);
        rig.later(async {
            let mut conversation = restored(&rig, &saved).await;
            conversation.accept(Input::from("Thanks.")).await.expect("a message");
            conversation.step().await;
        });
        rig.holds("new message", dies);
    });
}

/// The conversation is restored, saved and inspected any number of times in between.
#[test]
fn looking_ends_no_call() {
    let rig = Rig::new("keyed", Dies::After);
    let saved = died_in_a_step(&rig);
    rig.later(async {
        let mut saved = saved;
        for _ in 0..3 {
            let conversation = restored(&rig, &saved).await;
            assert!(conversation.history().len() >= 2);
            saved = conversation.save().await.expect("saved");
            let run = rig.runner().run(ada());
            let looked = run.recorded(&"c".into()).await.expect("a store").expect("it began");
            assert_eq!(looked.outcome(), Outcome::OutcomeUnknown);
        }
        restored(&rig, &saved).await.step().await;
    });
    rig.holds("looked at", Dies::After);
}

#[test]
fn a_run_that_is_given_the_call_again() {
    every(|rig, dies| {
        let outcome = is_given_again(&rig);
        assert_eq!(outcome == Outcome::OutcomeUnknown, rig.tool == "plain");
        rig.holds("exec", dies);
    });
}

/// A service makes the call again in the run that it restored.
pub(super) fn is_given_again(rig: &Rig) -> Outcome {
    let runner = rig.runner();
    let snapshot: RunSnapshot = runtime().block_on(async { runner.run(ada()).snapshot().await.expect("taken") });
    let call = ToolCall::text("c", rig.name(), ARGUMENTS);
    let doomed = runner.run(ada()).exec(call.clone());
    rig.dies(async move { drop(doomed.await) });
    rig.later(async {
        let options = RunOptions::new().principal("ada").tenant("acme");
        let run = rig.runner().restore(snapshot, options).await.expect("restored");
        run.exec(call).await.outcome()
    })
}

#[test]
fn a_worker_that_takes_over() {
    every(|rig, dies| {
        is_taken_over(&rig);
        rig.holds("worker", dies);
    });
}

fn is_taken_over(rig: &Rig) {
    runtime().block_on(async {
        let mut conversation = rig.agent().converse(rig.runner().run(ada()));
        conversation.accept(Input::from("Pay.")).await.expect("a message");
        rig.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    });
    let worker = rig.worker();
    rig.dies(async move { drop(worker.run(std::future::pending()).await) });
    rig.later(rig.worked());
}

#[test]
fn an_engine_that_takes_the_step_again() {
    every(|rig, dies| {
        is_driven_again(&rig);
        rig.holds("engine", dies);
    });
}

fn is_driven_again(rig: &Rig) {
    let journal = Arc::new(Mutex::new(Vec::new()));
    let process =
        || Process { journal: Arc::clone(&journal), at: Mutex::new(0), agent: rig.agent(), runner: rig.runner() };
    let first = process();
    rig.dies(async move { first.drive().await });
    rig.later(async { process().drive().await });
}

fn died_in_a_step(rig: &Rig) -> SavedConversation {
    let (mut conversation, saved) = runtime().block_on(async {
        let conversation = rig.asked().await;
        let saved = conversation.save().await.expect("saved");
        (conversation, saved)
    });
    rig.dies(async move { drop(conversation.step().await) });
    saved
}

async fn restored(rig: &Rig, saved: &SavedConversation) -> Conversation {
    let options = RunOptions::new().principal("ada").tenant("acme");
    rig.agent().restore(&rig.runner(), options, saved).await.expect("restored")
}

/// One process of an engine over a journal that outlives it.
struct Process {
    journal: Arc<Mutex<Vec<String>>>,
    at: Mutex<usize>,
    agent: Agent,
    runner: ToolRunner,
}

#[async_trait]
impl Durable for Process {
    type Error = StepError;

    async fn unit(&self, _name: &str, work: StepFuture<'_>) -> Result<SavedConversation, StepError> {
        let kept = {
            let mut at = of(&self.at);
            *at += 1;
            of(&self.journal).get(*at - 1).cloned()
        };
        if let Some(kept) = kept {
            return Ok(serde_json::from_str(&kept).expect("a document"));
        }
        let saved = work.await?;
        of(&self.journal).push(serde_json::to_string(&saved).expect("JSON"));
        Ok(saved)
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, StepError> {
        self.agent.restore(&self.runner, ada(), saved).await.map_err(StepError::other)
    }
}

impl Process {
    async fn drive(self) {
        let mut conversation = self.agent.converse(self.runner.run(ada()));
        conversation.accept_on(&self, "message", Input::from("Pay.")).await.expect("a message");
        while let Step::Asked | Step::Ran = conversation.step_on(&self).await.expect("a step") {}
    }
}
