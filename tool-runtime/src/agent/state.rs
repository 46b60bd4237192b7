//! What a conversation remembers: the history, and the calls of a turn that is not settled yet.

use serde::{Deserialize, Serialize};

use crate::agent::{ModelTurn, WaitingCall};
use crate::call::{CallId, Outcome, ToolExecResult};
use crate::store::Suspension;
use crate::wire::Message;
use crate::wire::history::ResultMessage;

/// What a conversation remembers.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) history: Vec<Message>,
    /// The calls of the last turn, in order, while any of them has no result yet.
    pub(super) open: Vec<Slot>,
    /// Model turns since the last message of the user.
    pub(super) asked: u32,
    pub(super) turns: Vec<ModelTurn>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Slot {
    /// On its way through the gate. Still so after a dropped future or a killed process.
    Running(CallId),
    Waiting(WaitingCall),
    Done(ResultMessage),
}

impl Slot {
    pub(super) fn of(result: ToolExecResult, name: &str) -> Self {
        let suspension = match result.outcome() {
            Outcome::ClientRequired => Suspension::Client,
            Outcome::ApprovalRequired => Suspension::Approval,
            _ => return Self::Done((&result).into()),
        };
        let (id, payload) = (result.call_id().clone(), result.shared_value().cloned());
        Self::Waiting(WaitingCall { id, name: name.to_owned(), suspension, payload })
    }
}
