//! The loop of a conversation: [`Turns`] asks the model, takes the calls of its answer through the gate, and begins again
//! until calls wait or there is an end. [`step`] decides what comes next.

pub(super) mod calls;
pub(super) mod events;
pub(super) mod execute;
pub(super) mod request;
pub(super) mod state;
pub(super) mod step;

use crate::agent::Agent;
use crate::agent::turns::state::State;
use crate::runner::Run;

/// The loop of one conversation: its model, the run that its calls go through, and what it remembers.
pub(super) struct Turns {
    pub(super) agent: Agent,
    pub(super) run: Run,
    pub(super) state: State,
}
