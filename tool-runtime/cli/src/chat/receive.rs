//! Applies an input to a conversation of `chat`, step by step.

use tool_runtime::agent::{Conversation, Input, Step, TurnOutcome};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::StoreError;

use crate::chat::Autosave;
use crate::exit::Failure;

/// The state of a conversation whose turn has not ended.
pub(super) const RUNNING: &str = "running";

/// The reason why an input was not applied.
pub(super) enum Unreceived {
    Refused(ResumeError),
    /// The conversation could not be saved, because another process has it.
    Unkept(Failure),
}

impl Unreceived {
    pub(super) fn failed(self) -> Failure {
        match self {
            Self::Refused(error) => Failure::failed(error.to_string()).code(error.code()),
            Self::Unkept(failure) => failure,
        }
    }
}

/// Accepts an input and continues the conversation until the turn ends or a call waits. A conversation of the store is
/// saved before the first step and after each step that does not end the turn, so that another process can continue it
/// if this one dies.
pub(super) async fn receive(
    conversation: &mut Conversation,
    autosave: &mut Autosave,
    input: Input,
) -> Result<TurnOutcome, Unreceived> {
    if matches!(autosave, Autosave::File(_)) {
        return conversation.receive(input).await.map_err(Unreceived::Refused);
    }
    conversation.accept(input).await.map_err(Unreceived::Refused)?;
    loop {
        match autosave.save(conversation, RUNNING, None).await {
            Err(failure) if failure.code == StoreError::Fenced.code() => {
                return Err(Unreceived::Unkept(lost(autosave.id())));
            }
            // A failed save is not fatal here. The next save includes this step, and the last save reports its failure.
            Err(_) | Ok(()) => {}
        }
        match conversation.step().await {
            Step::Waits(calls) => return Ok(TurnOutcome::Waiting { calls }),
            Step::Ended(ended) => return Ok(ended),
            // A turn of the model or some calls ended, and the conversation continues.
            _ => {}
        }
    }
}

/// Returns the failure for a conversation that another process has taken over.
pub(super) fn lost(id: &str) -> Failure {
    let text = format!("another process took over the conversation `{id}`; its last step here was not saved");
    Failure::failed(text).code("run_lost")
}
