//! Closes a waiting call of any kind without a decision or a result.

use crate::call::{CallId, Cause, Suspension, ToolExecResult};
use crate::runner::gate::ending::Stop;
use crate::runner::ledger::orphans;
use crate::runner::waiting::comparison::Purpose;
use crate::runner::waiting::suspend::{Given, Reopened, reopen};
use crate::runner::{ResumeError, Run};
use crate::store::{DecisionKind, PendingCall};
use crate::tool::ToolEffect;

/// See [`Run::abandon`].
pub(in crate::runner) async fn abandon(run: &Run, call_id: &str) -> Result<ToolExecResult, ResumeError> {
    let effect = |pending: &PendingCall| match pending.suspension {
        Suspension::Approval if pending.graph.as_ref().is_some_and(|graph| graph.begun) => {
            ToolEffect::ExternalSideEffect
        }
        Suspension::Approval => ToolEffect::ReadOnly,
        // If the catalog no longer has the tool, assume the greatest effect.
        Suspension::Client => run.effect_of(pending.tool.as_str()).unwrap_or(ToolEffect::ExternalSideEffect),
    };
    let given = Given { purpose: Purpose::Close(None), kind: DecisionKind::Abandoned, decider: None, question: None };
    let compared = |pending: &PendingCall, _: &mut _| Ok((pending.suspension, effect(pending)));
    match reopen(run, &CallId::new(call_id), given, compared).await? {
        Reopened::Mismatch(result) => Ok(result),
        Reopened::Open(mut open, (suspension, effect)) => {
            let left = open.graph();
            // The client, or the graph that has begun, may have executed the call.
            let may_have_run = suspension == Suspension::Client || effect != ToolEffect::ReadOnly;
            if may_have_run {
                open.at_client();
            }
            let mut stop = Stop::new(Cause::Cancelled.outcome(effect));
            if effect != ToolEffect::ReadOnly {
                stop.cause = Some(Cause::Cancelled);
            } else if may_have_run {
                stop = stop.message("The client returned no result. The call was cancelled.");
            } else {
                stop = stop.message("The call got no decision. It did not run.");
            }
            let result = Box::pin(open.finish_waiting(Err(stop))).await?;
            orphans::leave(run, result.call_id(), left).await;
            Ok(result)
        }
    }
}
