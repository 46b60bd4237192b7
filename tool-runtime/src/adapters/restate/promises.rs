//! What is brought to the calls of a workflow, as durable promises.

use std::collections::BTreeMap;

use restate_sdk::context::{ContextPromises, ContextReadState, SharedWorkflowContext};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use serde::{Deserialize, Serialize};

use crate::agent::{ClientAnswer, Incoming};
use crate::call::{Decider, Question};
use crate::runner::ApprovalDecision;

/// The state of a workflow that names the calls that wait.
pub(super) const WAITING: &str = "waiting";

/// The questions of the calls that wait, with how many answers to each did not fit: its call asks it again, and a promise
/// is kept once.
pub(super) type Waiting = BTreeMap<Question, u32>;

/// The name of the promise of a question.
pub(super) fn promise(question: &Question, refused: u32) -> String {
    match refused {
        0 => question.to_string(),
        refused => format!("{question}/{refused}"),
    }
}

/// The answer to a question.
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

    pub(super) fn to(self, question: &Question) -> Incoming {
        let id = question.call_id();
        let (decision, decider) = match self {
            Self::Approve { decider } => (ApprovalDecision::Approve, decider),
            Self::ApproveEdited { arguments, decider } => (ApprovalDecision::ApproveEdited(arguments), decider),
            Self::Deny { message, decider } => (ApprovalDecision::Deny(message), decider),
            Self::Respond { value, decider } => (ApprovalDecision::Respond(value), decider),
            Self::Client { json } => return Incoming::new().answer(ClientAnswer::value(id.clone(), json)),
            Self::ClientFailed => return Incoming::new().answer(ClientAnswer::failed(id.clone())),
        };
        Incoming::new().decide(question, decision, &decider)
    }
}

/// Delivers a person's decision to a waiting call of the workflow, from a shared handler. Pass the decider that the
/// application authenticated, not a name from the request. The workflow checks the decider's rights and the question;
/// if it refuses the decision, the call keeps waiting for another one.
///
/// # Errors
/// 404 if no call asks this question now, 409 if it has an answer that the workflow has not looked at yet.
pub async fn decide(
    context: &SharedWorkflowContext<'_>,
    question: &Question,
    decision: ApprovalDecision,
    decider: &Decider,
) -> Result<(), HandlerError> {
    bring(context, question, Brought::decided(decision, decider.clone())).await
}

/// Returns the questions that calls of the workflow ask now. `Store::pending_calls` has the details of each call to
/// show to a person.
///
/// # Errors
/// The workflow's state cannot be read.
pub async fn questions(context: &SharedWorkflowContext<'_>) -> Result<Vec<Question>, HandlerError> {
    Ok(waiting(context).await?.into_keys().collect())
}

async fn waiting(context: &SharedWorkflowContext<'_>) -> Result<Waiting, HandlerError> {
    Ok(context.get::<Json<Waiting>>(WAITING).await?.map(Json::into_inner).unwrap_or_default())
}

/// Brings a client's answer to a call of the workflow, from a shared handler.
///
/// # Errors
/// As for [`decide`].
pub async fn answer(context: &SharedWorkflowContext<'_>, answer: ClientAnswer) -> Result<(), HandlerError> {
    let (id, brought) = match answer {
        ClientAnswer::Value { id, json } => (id, Brought::Client { json }),
        ClientAnswer::Failed { id } => (id, Brought::ClientFailed),
    };
    let question = questions(context).await?.into_iter().find(|question| *question.call_id() == id);
    bring(context, &question.ok_or_else(not_pending)?, brought).await
}

fn not_pending() -> TerminalError {
    TerminalError::new_with_code(404, "no call asks this question (not_pending)")
}

async fn bring(context: &SharedWorkflowContext<'_>, question: &Question, brought: Brought) -> Result<(), HandlerError> {
    let refused = waiting(context).await?.get(question).copied().ok_or_else(not_pending)?;
    let name = promise(question, refused);
    if context.peek_promise::<Json<Brought>>(&name).await?.is_some() {
        return Err(TerminalError::new_with_code(409, "the call was decided on already (already_decided)").into());
    }
    context.resolve_promise(&name, Json(brought));
    Ok(())
}
