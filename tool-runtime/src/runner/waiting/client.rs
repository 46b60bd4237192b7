//! Client tools: accepts a client's untrusted result of a waiting call, once, or its failure.

use crate::call::{CallId, Cause, Outcome, Suspension, ToolExecResult};
use crate::json::{self, Limits};
use crate::redact::Projected;
use crate::runner::gate::deliver::delivered;
use crate::runner::gate::draft::{Refused, Shown};
use crate::runner::gate::ending::{Ending, Stop};
use crate::runner::gate::stages;
use crate::runner::waiting::comparison::Purpose;
use crate::runner::waiting::suspend::{Given, Reopened, reopen};
use crate::runner::{ResumeError, Run};
use crate::store::{DecisionKind, DecisionRecord, PendingCall, Store as _};
use crate::tool::ToolEffect;

/// See [`Run::client_result`].
pub(in crate::runner) async fn client_result(
    run: &Run,
    call_id: &str,
    value: &str,
) -> Result<ToolExecResult, ResumeError> {
    let id = CallId::new(call_id);
    let ended = Box::pin(client_result_in_time(run, &id, value, true)).await;
    // The store's time decides about the expiry. It can be ahead of this process's clock.
    if let Err(ResumeError::NotWaiting(_)) = &ended
        && let Some(pending) = run.pending(&id).await.map_err(ResumeError::Store)?
        && pending.is_expired(run.shared().store.now().await.map_err(|error| run.store_failed(error))?)
    {
        return Box::pin(client_result_in_time(run, &id, value, false)).await;
    }
    ended
}

/// Accepts a client's result. The result is late if `is_in_time` is `false`, or if the call has expired by the clock of
/// this process.
async fn client_result_in_time(
    run: &Run,
    id: &CallId,
    value: &str,
    is_in_time: bool,
) -> Result<ToolExecResult, ResumeError> {
    let purpose = Purpose::Resume(Suspension::Client);
    let given = Given { purpose, kind: DecisionKind::ClientResult, decider: None, question: None };
    let compared = |pending: &PendingCall, record: &mut DecisionRecord| {
        answered(run, pending, value, record, is_in_time && !pending.is_expired(run.shared().clock.now()))
    };
    match reopen(run, id, given, compared).await? {
        Reopened::Mismatch(result) => Ok(result),
        Reopened::Open(mut open, answered) => {
            open.at_client();
            Box::pin(open.finish_waiting(answered.map(|projected| Ending::Delivered(delivered(projected))))).await
        }
    }
}

/// See [`Run::client_failed`].
pub(in crate::runner) async fn client_failed(run: &Run, call_id: &str) -> Result<ToolExecResult, ResumeError> {
    let purpose = Purpose::Close(Some(Suspension::Client));
    let given = Given { purpose, kind: DecisionKind::ClientFailed, decider: None, question: None };
    match reopen(run, &CallId::new(call_id), given, |_, _| Ok(())).await? {
        Reopened::Mismatch(result) => Ok(result),
        Reopened::Open(mut open, ()) => {
            open.at_client();
            let stop = Stop::new(Outcome::ExecutionError).message("The client could not execute the call.");
            Box::pin(open.finish_waiting(Err(stop))).await
        }
    }
}

/// The client's projected value, or the stop for a value that came too late.
type Answered = Result<Projected, Stop>;

/// Reads a client's result before its call is claimed. `Err` if the result does not match; the call still waits.
fn answered(
    run: &Run,
    pending: &PendingCall,
    value: &str,
    record: &mut DecisionRecord,
    is_in_time: bool,
) -> Result<Answered, Refused> {
    let shared = run.shared();
    if !is_in_time {
        record.decision = DecisionKind::TooLate;
        return Ok(Err(too_late(run.effect_of(pending.tool.as_str()))));
    }
    let refuse = |mut stop: Stop| {
        // The standard messages of these outcomes are about the output of a tool.
        stop = stop.message("The client's result does not match the declaration of the tool. The call still waits.");
        Refused { stop, shown: Shown::Masked(pending.shown_arguments.clone()) }
    };
    let invalid = || Stop::new(Outcome::OutputInvalid);
    let entry = shared.catalog.entry(pending.tool.as_str());
    let found = entry.filter(|entry| entry.answer.is_some());
    let found = found.and_then(|entry| Some((entry, shared.compiled.shown(entry)?)));
    let (entry, projector) = found.ok_or_else(|| refuse(Stop::new(Outcome::ApprovalMismatch)))?;
    let limit = entry.result_bytes(&run.policy().limits_of(entry.spec.name.as_str()));
    let limits = Limits { bytes: limit, ..Limits::default() };
    let tree = json::parse_value(value, &limits).map_err(|error| {
        refuse(Stop::new(if error.kind.is_limit() { Outcome::ResultTooLarge } else { Outcome::OutputInvalid }))
    })?;
    let violations = shared.compiled.check_answer(entry, &tree).ok_or_else(|| refuse(invalid()))?;
    if !violations.is_empty() {
        return Err(refuse(invalid().errors(violations)));
    }
    let projected = projector.project(&tree, limit).map_err(|error| refuse(stages::unprojected(&error)))?;
    Ok(Ok(projected))
}

/// Returns the stop for a result that comes too late. The outcome is unknown, unless the tool is `read_only`.
fn too_late(effect: Option<ToolEffect>) -> Stop {
    let message = "The client's result came too late and was not read.";
    if effect == Some(ToolEffect::ReadOnly) {
        return Stop::new(Outcome::ApprovalExpired).message(message);
    }
    let mut stop = Stop::new(Outcome::OutcomeUnknown)
        .message(format!("{message} The call may or may not have taken effect: do not repeat it blindly."));
    stop.cause = Some(Cause::Timeout);
    stop
}
