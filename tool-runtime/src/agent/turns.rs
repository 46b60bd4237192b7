//! The loop of a conversation: [`Turns`] asks the model, takes the calls of its answer through the gate, and repeats
//! this until calls wait or the request ends. [`step`] decides the next step.

pub(super) mod calls;
pub(super) mod events;
pub(super) mod execute;
pub(super) mod request;
pub(super) mod state;
pub(super) mod step;

use crate::agent::Agent;
use crate::agent::turns::state::ConversationState;
use crate::runner::Run;

/// The loop of one conversation: its model, its run, and its state.
pub(super) struct Turns {
    pub(super) agent: Agent,
    pub(super) run: Run,
    pub(super) state: ConversationState,
}
