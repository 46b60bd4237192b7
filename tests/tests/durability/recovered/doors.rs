//! Calls that the model made and the policy lets run.

use tool_runtime::ToolCall;
use tool_runtime::agent::{Durable, SavedConversation, StepError, StepFuture, TurnOutcome};
use tool_runtime::runner::RunSnapshot;

use super::*;

/// A conversation that is restored from the document before the call.
#[test]
fn a_restored_conversation() {
    every(|rig, dies| {
        let saved = died_in_a_step(&rig);
        let ended = rig.later(async {
            let mut conversation = restored(&rig, &saved).await;
            assert!(matches!(conversation.step().await, Step::Ran));
            conversation.step().await;
            conversation.step().await
        });
        assert!(matches!(ended, Step::Ended(TurnOutcome::Answered { .. })), "{ended:?}");
        rig.holds("restored", dies);
    });
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

/// Restored and saved any number of times in between, and looked at.
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
        let runner = rig.runner();
        let snapshot: RunSnapshot = runtime().block_on(async { runner.run(ada()).snapshot().await.expect("taken") });
        let call = ToolCall::text("c", rig.name(), ARGUMENTS);
        let doomed = runner.run(ada()).exec(call.clone());
        rig.dies(async move { drop(doomed.await) });
        rig.later(async {
            let options = RunOptions::new().principal("ada").tenant("acme");
            let run = rig.runner().restore(snapshot, options).await.expect("restored");
            let result = run.exec(call).await;
            assert_eq!(result.outcome() == Outcome::OutcomeUnknown, rig.tool == "plain");
        });
        rig.holds("exec", dies);
    });
}

#[test]
fn a_worker_that_takes_over() {
    every(|rig, dies| {
        runtime().block_on(async {
            let conversation = {
                let mut conversation = rig.agent().converse(rig.runner().run(ada()));
                conversation.accept(Input::from("Pay.")).await.expect("a message");
                conversation
            };
            rig.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
        });
        let worker = rig.worker();
        rig.dies(async move { drop(worker.run(std::future::pending()).await) });
        rig.later(rig.worked());
        rig.holds("worker", dies);
    });
}

#[test]
fn an_engine_that_takes_the_step_again() {
    every(|rig, dies| {
        let journal = Arc::new(Mutex::new(Vec::new()));
        let process =
            || Process { journal: Arc::clone(&journal), at: Mutex::new(0), agent: rig.agent(), runner: rig.runner() };
        let first = process();
        rig.dies(async move { first.drive().await });
        let second = process();
        rig.later(second.drive());
        rig.holds("engine", dies);
    });
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
