//! [`Unit`]: a step of a conversation that leads from one document to the next, in any process.

use serde::{Deserialize, Serialize};

use crate::agent::durable::{Stepped, UnitError};
use crate::agent::{
    Agent, Conversation, Ended, Incoming, ModelError, ModelErrorKind, SavedConversation, Step, StopReason, WaitingCall,
};
use crate::runner::{RestoreError, ResumeError, RunOptions, ToolRunner};
use crate::store::StoreError;

/// A step of a conversation: asking the model once, taking the next calls of its answer through the gate, or accepting
/// what somebody brought. It leads from one document to the next, in any process that has the same agent and a runner
/// over the same store. See [`Durable`](crate::agent::Durable).
#[derive(Clone)]
#[must_use = "a unit is done by `perform`"]
pub struct Unit {
    conversation: Option<SavedConversation>,
    incoming: Option<Incoming>,
}

/// What follows a unit.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Next {
    /// Another step.
    Step,
    /// Calls wait; the first of them is too late after this time, if that is known.
    Wait { seconds: Option<u64> },
    /// Nothing.
    End,
}

impl Unit {
    /// Creates the unit that begins a conversation with a message of the user. Its run needs an id
    /// ([`RunOptions::run_id`]) that is the same when it is repeated.
    pub const fn begin(incoming: Incoming) -> Self {
        Self { conversation: None, incoming: Some(incoming) }
    }

    /// Creates the unit that brings something to a conversation: a message, decisions, answers of the client. What does
    /// not fit is [`refused`](Stepped::code), and the conversation is unchanged.
    pub const fn accept(conversation: SavedConversation, incoming: Incoming) -> Self {
        Self { conversation: Some(conversation), incoming: Some(incoming) }
    }

    /// Creates the unit that does what comes next.
    pub const fn step(conversation: SavedConversation) -> Self {
        Self { conversation: Some(conversation), incoming: None }
    }

    /// Returns its name, for people: `begin`, `accept` or `step`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match (&self.conversation, &self.incoming) {
            (None, _) => "begin",
            (_, Some(_)) => "accept",
            (_, None) => "step",
        }
    }

    /// Does it. The options are those of [`Agent::restore`], with a [`run_id`](RunOptions::run_id) for the unit that
    /// begins.
    ///
    /// A call that an earlier attempt began may still be running: then this waits until the attempt counts as gone, at
    /// most as long as the runner's [`lease`](crate::runner::RunnerBuilder::lease).
    ///
    /// # Errors
    /// The document cannot be restored, the store failed, the model failed in a way that may pass, or another process
    /// still executes a call of the run.
    pub async fn perform(self, agent: &Agent, runner: &ToolRunner, options: RunOptions) -> Result<Stepped, UnitError> {
        let mut conversation = match &self.conversation {
            None => agent.converse(runner.run(options)),
            Some(saved) => agent.restore(runner, options, saved).await?,
        };
        left_alone(&conversation).await?;
        let (code, next, text) = match self.incoming {
            Some(incoming) => accept(&mut conversation, incoming).await?,
            None => step(&mut conversation).await?,
        };
        let conversation = conversation.save().await?;
        Ok(Stepped { code, next, text, conversation })
    }
}

type Did = (String, Next, String);

/// Waits for calls that an earlier attempt may still execute.
async fn left_alone(conversation: &Conversation) -> Result<(), UnitError> {
    if let Some(held) = conversation.run().held_elsewhere().await? {
        tokio::time::sleep(held).await;
        if conversation.run().held_elsewhere().await?.is_some() {
            let source = "another process still executes a call of the run".into();
            return Err(UnitError { code: "still_running", retryable: true, source });
        }
    }
    Ok(())
}

async fn accept(conversation: &mut Conversation, incoming: Incoming) -> Result<Did, UnitError> {
    let code = match conversation.accept(incoming).await {
        Ok(()) => "accepted",
        Err(ResumeError::Store(error)) => return Err(error.into()),
        Err(_) => "refused",
    };
    // What was refused or did not fit leaves its call waiting, which the next step says.
    Ok((code.to_owned(), Next::Step, String::new()))
}

async fn step(conversation: &mut Conversation) -> Result<Did, UnitError> {
    let step = conversation.step().await;
    let code = step.code().to_owned();
    Ok(match step {
        Step::Asked | Step::Ran => (code, Next::Step, String::new()),
        Step::Waits(calls) => (code, Next::Wait { seconds: expires_in(conversation, &calls) }, String::new()),
        Step::Ended(Ended::Answered { text }) => (code, Next::End, text),
        Step::Ended(Ended::Stopped { reason: StopReason::Model(error), .. }) if may_pass(&error) => {
            return Err(UnitError { code: error.code(), retryable: true, source: error.into() });
        }
        Step::Ended(Ended::Stopped { reason: StopReason::Unsettled(ResumeError::Store(error)), .. }) => {
            return Err(error.into());
        }
        Step::Ended(Ended::Stopped { text, .. }) => (code, Next::End, text),
        Step::Ended(Ended::Waiting { .. }) => (code, Next::Step, String::new()),
    })
}

/// The full seconds after which the first of the calls is too late.
fn expires_in(conversation: &Conversation, calls: &[WaitingCall]) -> Option<u64> {
    let first = calls.iter().filter_map(|call| call.expires_at).min()?;
    let left = conversation.run().time_until(first).unwrap_or_default();
    Some(left.as_secs() + u64::from(left.subsec_nanos() > 0))
}

/// Whether the same request may succeed later.
const fn may_pass(error: &ModelError) -> bool {
    match error.kind() {
        ModelErrorKind::Connect | ModelErrorKind::Timeout => true,
        ModelErrorKind::Status(status) => matches!(status, 408 | 429 | 500..),
        _ => false,
    }
}

impl From<StoreError> for UnitError {
    fn from(error: StoreError) -> Self {
        let never = matches!(error, StoreError::Corrupt(_) | StoreError::NotLocked | StoreError::Duplicate);
        Self { code: error.code(), retryable: !never, source: error.into() }
    }
}

impl From<RestoreError> for UnitError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Store(error) => error.into(),
            error => Self { code: error.code(), retryable: false, source: error.into() },
        }
    }
}
