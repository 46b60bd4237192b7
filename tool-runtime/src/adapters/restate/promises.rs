//! What is brought to the calls of a workflow, as durable promises.

use std::collections::BTreeMap;

use restate_sdk::context::{ContextPromises, ContextReadState, SharedWorkflowContext};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use serde::{Deserialize, Serialize};

use crate::agent::{ClientAnswer, Incoming};
use crate::call::{CallId, Decider};
use crate::runner::ApprovalDecision;

/// The state of a workflow that names the calls that wait.
pub(super) const WAITING: &str = "waiting";

/// The calls that wait, with how much was brought to each before: what did not fit leaves its call waiting, and a promise
/// is kept once.
pub(super) type Waiting = BTreeMap<CallId, u32>;

/// The name of the promise of a call.
pub(super) fn promise(id: &CallId, round: u32) -> String {
    match round {
        0 => id.to_string(),
        round => format!("{id}/{round}"),
    }
}

/// What somebody brings to a call that waits.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Brought {
    Approve { decider: Decider },
    ApproveEdited { arguments: String, decider: Decider },
    Deny { message: Option<String>, decider: Decider },
    Respond { value: String, decider: Decider },
    Client { json: String },
    ClientFailed,
}

impl Brought {
    fn decided(decision: ApprovalDecision, decider: Decider) -> Self {
        match decision {
            ApprovalDecision::Approve => Self::Approve { decider },
            ApprovalDecision::ApproveEdited(arguments) => Self::ApproveEdited { arguments, decider },
            ApprovalDecision::Deny(message) => Self::Deny { message, decider },
            ApprovalDecision::Respond(value) => Self::Respond { value, decider },
        }
    }

    pub(super) fn to(self, id: &CallId) -> Incoming {
        let (decision, decider) = match self {
            Self::Approve { decider } => (ApprovalDecision::Approve, decider),
            Self::ApproveEdited { arguments, decider } => (ApprovalDecision::ApproveEdited(arguments), decider),
            Self::Deny { message, decider } => (ApprovalDecision::Deny(message), decider),
            Self::Respond { value, decider } => (ApprovalDecision::Respond(value), decider),
            Self::Client { json } => return Incoming::new().answer(ClientAnswer::value(id.clone(), json)),
            Self::ClientFailed => return Incoming::new().answer(ClientAnswer::failed(id.clone())),
        };
        Incoming::new().decide(id.clone(), decision, &decider)
    }
}

/// Brings a person's decision to a call of the workflow, from a shared handler. The decider is whom the application
/// authenticated, not whom the request names. Whether they may decide, and whether the decision fits, is found out by the
/// workflow; if not, the call waits for another one.
///
/// # Errors
/// 404 if no such call waits, 409 if something was brought to it that the workflow has not looked at yet.
pub async fn decide(
    context: &SharedWorkflowContext<'_>,
    call: &CallId,
    decision: ApprovalDecision,
    decider: &Decider,
) -> Result<(), HandlerError> {
    bring(context, call, Brought::decided(decision, decider.clone())).await
}

/// Brings a client's answer to a call of the workflow, from a shared handler.
///
/// # Errors
/// As for [`decide`].
pub async fn answer(context: &SharedWorkflowContext<'_>, answer: ClientAnswer) -> Result<(), HandlerError> {
    match answer {
        ClientAnswer::Value { id, json } => bring(context, &id, Brought::Client { json }).await,
        ClientAnswer::Failed { id } => bring(context, &id, Brought::ClientFailed).await,
    }
}

async fn bring(context: &SharedWorkflowContext<'_>, call: &CallId, brought: Brought) -> Result<(), HandlerError> {
    let waiting = context.get::<Json<Waiting>>(WAITING).await?;
    let round = waiting.and_then(|Json(waiting)| waiting.get(call).copied());
    let round = round.ok_or_else(|| TerminalError::new_with_code(404, "no such call waits (not_pending)"))?;
    let name = promise(call, round);
    if context.peek_promise::<Json<Brought>>(&name).await?.is_some() {
        return Err(TerminalError::new_with_code(409, "the call was decided on already (already_decided)").into());
    }
    context.resolve_promise(&name, Json(brought));
    Ok(())
}
