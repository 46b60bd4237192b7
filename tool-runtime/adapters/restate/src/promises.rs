//! Decisions and answers for the calls of a workflow, as durable promises.

use std::collections::BTreeMap;

use restate_sdk::context::{ContextPromises, ContextReadState, SharedWorkflowContext};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use serde::{Deserialize, Serialize};
use tool_runtime::agent::{ClientAnswer, Input};
use tool_runtime::call::{Decider, Question};
use tool_runtime::runner::ApprovalDecision;

/// The key of the workflow's state that holds the open questions.
pub(crate) const WAITING: &str = "waiting";

/// The open questions, each with the number of its refused answers. After a refusal the call asks the same question
/// again, but a promise can be resolved only once, so the number is part of the promise's name.
pub(crate) type Waiting = BTreeMap<Question, u32>;

/// The name of the promise of a question.
pub(crate) fn promise(question: &Question, refused: u32) -> String {
    match refused {
        0 => question.to_string(),
        refused => format!("{question}/{refused}"),
    }
}

/// The answer to a question.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Brought {
    Decided { decision: ApprovalDecision, decider: Decider },
    Client(ClientAnswer),
}

impl Brought {
    pub(crate) fn to(self, question: &Question) -> Input {
        match self {
            Self::Decided { decision, decider } => Input::new().decide(question, decision, &decider),
            Self::Client(answer) => Input::new().answer(answer),
        }
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
    bring(context, question, Brought::Decided { decision, decider: decider.clone() }).await
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

/// Delivers a client's answer to a call of the workflow, from a shared handler.
///
/// # Errors
/// As for [`decide`].
pub async fn answer(context: &SharedWorkflowContext<'_>, answer: ClientAnswer) -> Result<(), HandlerError> {
    let question = questions(context).await?.into_iter().find(|question| question.call_id() == answer.id());
    bring(context, &question.ok_or_else(not_pending)?, Brought::Client(answer)).await
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
