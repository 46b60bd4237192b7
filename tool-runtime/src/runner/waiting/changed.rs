//! Finds and ends waiting calls that this process cannot run, because its policy or the definition of a tool has
//! changed.

use std::sync::Arc;

use crate::call::{DecisionError, Outcome, Question, ToolExecResult};
use crate::runner::gate::ending::Stop;
use crate::runner::waiting::{approval, comparison};
use crate::runner::{ResumeError, Run};
use crate::store::{Key, PendingCall, StoreError};

/// Returns the change that makes this process refuse every approval of a waiting call. `None` if there is no such
/// change, or if the process does not have the tool, because an MCP server may still publish it.
///
/// For a graph, also compares the definition of the inner call's tool. The inner call needs no comparison of policies,
/// because its run has the policy of the graph's call, or a policy derived from it.
pub(crate) async fn change_since(run: &Run, call: &PendingCall) -> Result<Option<DecisionError>, StoreError> {
    let change = comparison::differs(run, call);
    let change = change.filter(|why| matches!(why, DecisionError::Definition | DecisionError::Policy));
    match &call.graph {
        _ if !has_tool(run, call) => Ok(None),
        Some(graph) if change.is_none() => {
            let (tenant, principal) = (call.tenant.as_deref(), call.principal.as_deref());
            let key = Key::waiting(Arc::clone(&graph.run_id), tenant, principal, &graph.call_id);
            let waiting = run.shared().store.waiting(key).await.map_err(|error| run.store_unread(error))?;
            let inner = waiting.map(|waiting| waiting.call).filter(|inner| has_tool(run, inner));
            let change = inner.and_then(|inner| comparison::differs(run, &inner));
            Ok(change.filter(|why| *why == DecisionError::Definition))
        }
        _ => Ok(change),
    }
}

fn has_tool(run: &Run, call: &PendingCall) -> bool {
    run.shared().catalog.entry(call.tool.as_str()).is_some()
}

/// Ends a call for which [`change_since`] returned a change, as if it had expired. Its caller can make the call again.
pub(crate) async fn expire(
    run: &Run,
    question: &Question,
    change: DecisionError,
) -> Result<ToolExecResult, ResumeError> {
    let what = if change == DecisionError::Policy { "policy of the server" } else { "definition of a tool" };
    let message = format!(
        "The {what} has changed while this call waited for an approval. It did not run. Make the same call again: it asks \
         for a new approval."
    );
    let stop = Stop::new(Outcome::ApprovalExpired).message(message).reason(change.to_string(), None);
    approval::expire_with(run, question, stop).await
}
