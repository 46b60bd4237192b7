//! [`LaterOutcome`]: the current state of a call that ended as `outcome_unknown`, for an MCP server whose client reads
//! the result later.

use crate::call::{CallId, Delivered, ToolExecResult, ToolInvocationRecord};
use crate::runner::Run;
use crate::runner::gate::deliver::adopt;
use crate::runner::waiting::settle;
use crate::store::{DecisionKind, DecisionRecord, Key, RecordFilter, Store as _, StoreError, StoredUnknown};

/// The current state of a call that ended as `outcome_unknown`.
pub(crate) enum LaterOutcome {
    /// The outcome was settled, with this result.
    Settled(ToolExecResult),
    /// The outcome is unknown and can be settled.
    Unsettled(Box<UnsettledCall>),
    /// The outcome is unknown, and no person can settle it.
    Final,
    /// The outcome is unknown. A document of the store has to be repaired before a person can settle it.
    Unreadable,
}

/// A call of unknown outcome that can be settled.
pub(crate) struct UnsettledCall {
    /// The key of the document of the call's effect, for the next look-up.
    pub(crate) place: Key,
    pub(crate) unknown: StoredUnknown,
    /// Whether the tool can reconcile the call.
    pub(crate) is_reconcilable: bool,
}

/// Reads the state of a call of this run that ended as `outcome_unknown`. `place` is the key of the document of its
/// effect, if an earlier look-up found it.
pub(crate) async fn outcome_of(run: &Run, call_id: &CallId, place: Option<&Key>) -> Result<LaterOutcome, StoreError> {
    let unread = |error| run.store_unread(error);
    let theirs = |record: &ToolInvocationRecord| run.owns(record.principal.as_deref(), record.tenant.as_deref());
    let found = match place {
        Some(place) => {
            let document = run.shared().store.document(place.clone()).await;
            document.map(|document| Some((place.clone(), settle::listed_in(document, run.id(), call_id, theirs)?)))
        }
        None => settle::find(run.shared(), run.id(), call_id, theirs).await,
    };
    let is_readable = match found {
        Ok(Some((place, unknown))) => {
            let entry = run.shared().catalog.entry(&unknown.record.name);
            let may_reconcile = entry.is_some_and(|entry| entry.behaviour.may_reconcile());
            let is_reconcilable = may_reconcile && unknown.waited.is_some();
            return Ok(LaterOutcome::Unsettled(Box::new(UnsettledCall { place, unknown, is_reconcilable })));
        }
        Err(error @ StoreError::Corrupt(_)) => {
            drop(unread(error));
            false
        }
        Err(error) => return Err(unread(error)),
        Ok(None) => true,
    };
    // A settlement removes the call from the document and writes a record in one transaction. The records are read
    // after the document, so that a settlement between the two reads is found.
    let of_call = RecordFilter { decisions: Some(true), ..RecordFilter::call(run.id(), call_id.clone()) };
    let records = run.shared().store.records(&of_call).await.map_err(unread)?;
    let settles = |decision: &&DecisionRecord| {
        matches!(decision.decision, DecisionKind::Happened | DecisionKind::DidNotHappen)
            && decision.refused().is_none()
            && run.owns(decision.principal.as_deref(), decision.tenant.as_deref())
    };
    let settlement = records.iter().filter_map(|sealed| sealed.record.as_decision()).rfind(settles);
    Ok(match settlement {
        Some(settlement) => LaterOutcome::Settled(settled(run, settlement)),
        None if is_readable => LaterOutcome::Final,
        None => LaterOutcome::Unreadable,
    })
}

/// Returns the result of a settled call, from the record of its settlement. It equals the result that the settlement
/// returned, but has no files.
fn settled(run: &Run, settlement: &DecisionRecord) -> ToolExecResult {
    let call_id = settlement.call_id.clone();
    let Some(shown) = settlement.result.clone() else { return settle::without_effect(call_id) };
    let result = ToolExecResult::delivered(call_id, true, Delivered::shown(shown));
    adopt(run, settlement.tool.as_str(), &result);
    result
}
