//! What comes into a conversation at the keyboard, carried out step by step.

use tool_runtime::agent::{Conversation, Ended, Incoming, Step};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::StoreError;

use crate::chat::Keeper;
use crate::exit::Failure;

/// The state of a conversation whose turn has not ended.
pub(super) const RUNNING: &str = "running";

/// Why what came in was not carried out.
pub(super) enum Unreceived {
    Refused(ResumeError),
    /// Another process has the conversation.
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

/// Takes what came in, and lets the conversation continue until it ends or waits. One in the store is kept before the
/// model is asked and after each step, so that another process continues there if this one dies.
pub(super) async fn receive(
    conversation: &mut Conversation,
    keeper: &mut Keeper,
    incoming: Incoming,
) -> Result<Ended, Unreceived> {
    if matches!(keeper, Keeper::File(_)) {
        return conversation.receive(incoming).await.map_err(Unreceived::Refused);
    }
    conversation.accept(incoming).await.map_err(Unreceived::Refused)?;
    loop {
        match keeper.save(conversation, RUNNING, None).await {
            Err(failure) if failure.code == StoreError::Fenced.code() => {
                return Err(Unreceived::Unkept(lost(keeper.id())));
            }
            // The next step is kept with this one, and the end is said if it is not.
            Err(_) | Ok(()) => {}
        }
        match conversation.step().await {
            Step::Waits(calls) => return Ok(Ended::Waiting { calls }),
            Step::Ended(ended) => return Ok(ended),
            // The model was asked, or calls ran.
            _ => {}
        }
    }
}

/// Another process has the conversation.
pub(super) fn lost(id: &str) -> Failure {
    let text = format!("another process has the conversation `{id}` now; what came last is not kept");
    Failure::failed(text).code("run_lost")
}
