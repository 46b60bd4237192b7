//! Delivers decisions and answers to the calls of a workflow through durable promises.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use restate_sdk::context::{
    ContextPromises, ContextReadState, ContextSideEffects, RunFuture, SharedWorkflowContext, WorkflowContext,
};
use restate_sdk::errors::{HandlerError, HandlerResult, TerminalError};
use restate_sdk::serde::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tool_runtime::ToolRunner;
use tool_runtime::agent::{Input, RunQueue};
use tool_runtime::call::{ClientAnswer, Decider, DecisionError, Question};
use tool_runtime::runner::{ApprovalDecision, ResumeError};

use crate::entry::store;

/// The key of the workflow's state that holds the open questions.
pub(crate) const WAITING: &str = "waiting";

/// The key of the workflow's state that holds the id of its run.
pub(crate) const RUN: &str = "run";

/// The open questions, each with the number of its resolved promises. After a refused answer, or one of several
/// approvals, the call waits with the same question again. A promise can be resolved only once, so the number is part
/// of the name of the next promise.
pub(crate) type Waiting = BTreeMap<Question, u32>;

/// Returns the name of a question's promise. `refused` is the number of its resolved promises.
pub(crate) fn promise(question: &Question, refused: u32) -> String {
    match refused {
        0 => question.to_string(),
        refused => format!("{question}/{refused}"),
    }
}

/// The value of a promise: the answer to its question, and the invocation that delivered it. If two invocations resolve
/// the promise at the same time, the second reads the first one's id in the value.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delivered {
    invocation: String,
    /// `None` if the workflow closed the question.
    pub(crate) brought: Option<Brought>,
}

impl Delivered {
    #[cfg(test)]
    pub(crate) fn of(invocation: &str, brought: Brought) -> Self {
        Self { invocation: invocation.to_owned(), brought: Some(brought) }
    }

    /// Returns the reason why another answer has no effect.
    const fn refusal(&self) -> Refused {
        if self.brought.is_some() { Refused::Decided } else { Refused::NotPending }
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
/// application authenticated, not a name from the request. This function checks the decision and the decider's rights
/// ([`RunQueue::check`]), and the workflow checks them again. If the workflow refuses the decision, the call waits for
/// another one.
///
/// A refused decision is recorded in the runner's store, also if it is late, a duplicate, or an answer to an earlier
/// question of the call ([`ToolRunner::record_late`]). If the decision and the call's timer come at the same time, one
/// of them resolves the promise. A decision that resolved the promise reaches the gate, which records the decision and
/// decides by its time whether it still has an effect.
///
/// A call that needs several approvals takes one at a time. An approval that comes before the workflow has processed
/// the previous one is refused with 409, and can be delivered again.
///
/// # Errors
/// 404 if no call waits with this question, or the decider belongs to another tenant; 403 if the decider may not
/// decide; 400 if the decision does not fit the call; 409 if the question has an answer that is not processed yet. Also
/// an error of the store or of the workflow's state.
pub async fn decide(
    context: &SharedWorkflowContext<'_>,
    runner: &ToolRunner,
    question: &Question,
    decision: ApprovalDecision,
    decider: &Decider,
) -> Result<(), HandlerError> {
    deliver(context, runner, question, decision, decider).await
}

/// Returns the open questions of the workflow's calls. `Store::pending_calls` returns the details of the calls, to show
/// them to a person.
///
/// # Errors
/// The workflow's state cannot be read.
pub async fn questions(context: &SharedWorkflowContext<'_>) -> Result<Vec<Question>, HandlerError> {
    Ok(context.waiting().await?.into_keys().collect())
}

/// Delivers a client's answer to a call of the workflow, from a shared handler.
///
/// # Errors
/// 404 if no call waits for this answer; 409 if its question has an answer that the workflow has not processed yet.
/// Also an error of the workflow's state.
pub async fn answer(context: &SharedWorkflowContext<'_>, answer: ClientAnswer) -> Result<(), HandlerError> {
    let question = questions(context).await?.into_iter().find(|question| question.call_id() == answer.id());
    let question = question.ok_or_else(|| Refused::NotPending.error())?;
    match bring(context, &question, Brought::Client(answer)).await? {
        Ok(()) => Ok(()),
        Err(refused) => Err(refused.error().into()),
    }
}

/// Access to the promises of a workflow from one of its handlers. Tests have another implementation.
pub(crate) trait Promises {
    /// Returns the id of the handler's invocation.
    fn invocation(&self) -> &str;
    /// Returns the value of a promise; `None` if it is not resolved.
    fn peek(&self, promise: &str) -> impl Future<Output = Result<Option<Delivered>, TerminalError>> + Send;
    /// Resolves a promise, unless it is already resolved.
    fn resolve(&self, promise: &str, delivered: Delivered);
}

impl Promises for WorkflowContext<'_> {
    fn invocation(&self) -> &str {
        self.invocation_id()
    }

    async fn peek(&self, promise: &str) -> Result<Option<Delivered>, TerminalError> {
        let context: &WorkflowContext<'_> = self;
        Ok(context.peek_promise::<Json<Delivered>>(promise).await?.map(Json::into_inner))
    }

    fn resolve(&self, promise: &str, delivered: Delivered) {
        self.resolve_promise(promise, Json(delivered));
    }
}

impl Promises for SharedWorkflowContext<'_> {
    fn invocation(&self) -> &str {
        self.invocation_id()
    }

    async fn peek(&self, promise: &str) -> Result<Option<Delivered>, TerminalError> {
        let context: &SharedWorkflowContext<'_> = self;
        Ok(context.peek_promise::<Json<Delivered>>(promise).await?.map(Json::into_inner))
    }

    fn resolve(&self, promise: &str, delivered: Delivered) {
        self.resolve_promise(promise, Json(delivered));
    }
}

/// Closes a question because its call has expired or the workflow ends. Returns the answer if one was delivered before;
/// later answers are refused. The promise keeps its first value, so it shows whether the answer or the closing came
/// first.
pub(crate) async fn close(
    context: &impl Promises,
    question: &Question,
    refused: u32,
) -> Result<Option<Brought>, TerminalError> {
    let name = promise(question, refused);
    context.resolve(&name, Delivered { invocation: context.invocation().to_owned(), brought: None });
    Ok(context.peek(&name).await?.and_then(|kept| kept.brought))
}

/// Closes questions at the end of a workflow. Returns the decisions that were delivered before, which have no effect.
pub(crate) async fn without_effect(
    context: &impl Promises,
    open: &[(Question, u32)],
) -> Result<Vec<(Question, ApprovalDecision, Decider)>, TerminalError> {
    let mut decisions = Vec::new();
    for (question, refused) in open {
        if let Some(Brought::Decided { decision, decider }) = close(context, question, *refused).await? {
            decisions.push((question.clone(), decision, decider));
        }
    }
    Ok(decisions)
}

/// Access to a workflow from its shared handlers.
trait Shared: Promises {
    /// Returns the id of the workflow's run; `None` before its first step.
    fn run_id(&self) -> impl Future<Output = Result<Option<String>, TerminalError>> + Send;
    /// Returns the open questions.
    fn waiting(&self) -> impl Future<Output = Result<Waiting, TerminalError>> + Send;
    /// Runs work and journals its result.
    fn once<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        work: impl Future<Output = HandlerResult<T>> + Send,
    ) -> impl Future<Output = Result<T, TerminalError>> + Send;
}

impl Shared for SharedWorkflowContext<'_> {
    async fn run_id(&self) -> Result<Option<String>, TerminalError> {
        let context: &SharedWorkflowContext<'_> = self;
        context.get::<String>(RUN).await
    }

    async fn waiting(&self) -> Result<Waiting, TerminalError> {
        let context: &SharedWorkflowContext<'_> = self;
        Ok(context.get::<Json<Waiting>>(WAITING).await?.map(Json::into_inner).unwrap_or_default())
    }

    async fn once<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        work: impl Future<Output = HandlerResult<T>> + Send,
    ) -> Result<T, TerminalError> {
        let context: &SharedWorkflowContext<'_> = self;
        context.run(move || async move { work.await.map(Json) }).name(name).await.map(Json::into_inner)
    }
}

/// The reason why an answer has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    NotPending,
    Decided,
}

impl Refused {
    fn error(self) -> TerminalError {
        let (status, text) = match self {
            Self::NotPending => (404, "no call asks this question (not_pending)"),
            Self::Decided => (409, "the call was decided on already (already_decided)"),
        };
        TerminalError::new_with_code(status, text)
    }
}

/// Checks a decision and delivers it. A refused decision is recorded.
async fn deliver(
    context: &impl Shared,
    runner: &ToolRunner,
    question: &Question,
    decision: ApprovalDecision,
    decider: &Decider,
) -> Result<(), HandlerError> {
    let Some(run_id) = context.run_id().await? else { return Err(Refused::NotPending.error().into()) };
    let check = async { refusal(RunQueue::new(runner).check(&run_id, question, &decision, decider).await) };
    if let Some((status, text)) = context.once("check", check).await? {
        return Err(TerminalError::new_with_code(status, text).into());
    }
    let brought = Brought::Decided { decision: decision.clone(), decider: decider.clone() };
    let Err(refused) = bring(context, question, brought).await? else { return Ok(()) };
    let note = async { runner.record_late(&run_id, question, &decision, decider).await.map_err(store) };
    context.once("late decision", note).await?;
    Err(refused.error().into())
}

/// Returns the status and the text for a refused decision; `None` for a valid one. `Err` is a failure of the store.
fn refusal(checked: Result<(), ResumeError>) -> HandlerResult<Option<(u16, String)>> {
    let error = match checked {
        Ok(()) => return Ok(None),
        Err(ResumeError::Store(error)) => return Err(store(error)),
        Err(error) => error,
    };
    let status = match &error {
        ResumeError::NotWaiting(_) | ResumeError::NotAllowed(DecisionError::Question) => 404,
        ResumeError::NotAllowed(_) => 403,
        _ => 400,
    };
    Ok(Some((status, format!("{error} ({})", error.code()))))
}

/// Resolves the promise of a question. `Err` if the question is not open, or if the promise has another value.
async fn bring(
    context: &impl Shared,
    question: &Question,
    brought: Brought,
) -> Result<Result<(), Refused>, HandlerError> {
    let Some(refused) = context.waiting().await?.get(question).copied() else {
        return Ok(Err(Refused::NotPending));
    };
    let name = promise(question, refused);
    if let Some(kept) = context.peek(&name).await? {
        return Ok(Err(kept.refusal()));
    }
    context.resolve(&name, Delivered { invocation: context.invocation().to_owned(), brought: Some(brought) });
    // Another invocation may have resolved the promise since. Restate keeps the first value and reports no error.
    Ok(match context.peek(&name).await? {
        Some(kept) if kept.invocation == context.invocation() => Ok(()),
        kept => Err(kept.map_or(Refused::Decided, |kept| kept.refusal())),
    })
}
