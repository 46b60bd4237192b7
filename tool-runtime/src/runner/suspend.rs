//! Suspensions: a call is frozen into the store, and opened again once, by the run that it belongs to.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::call::{CallId, Outcome, Suspension, ToolExecResult, ToolInvocationRecord};
use crate::contain::discard;
use crate::hydrate::Hydrated;
use crate::runner::draft::{Draft, Refused};
use crate::runner::ending::{Ending, Stop, Suspended};
use crate::runner::open::OpenCall;
use crate::runner::waiting::Purpose;
use crate::runner::{ResumeError, Run, telemetry, waiting};
use crate::store::{FrozenArguments, PendingCall, RecordFilter, StoreError};

/// Freezes a call into the store, so that it can be resumed later.
pub(super) async fn suspend(
    open: &OpenCall,
    hydrated: Hydrated,
    suspension: Suspension,
    prepared: Option<Arc<RawValue>>,
) -> Result<Ending, Stop> {
    let run = open.run();
    let (shared, options) = (run.shared(), run.options());
    let now = shared.clock.now();
    let spec = &hydrated.entry.spec;
    let pending = PendingCall {
        version: PendingCall::VERSION,
        call_id: open.draft.id.clone(),
        tool: spec.name.clone(),
        definition_hash: spec.definition_hash,
        arguments: FrozenArguments::new(Arc::clone(hydrated.frozen.text())),
        argument_digest: hydrated.digest(),
        shown_arguments: Arc::clone(&hydrated.masked),
        principal: options.principal.clone(),
        tenant: options.tenant.clone(),
        roles: options.roles.clone(),
        attributes: options.attributes.clone(),
        tools: options.tools.clone(),
        policy_revision: run.policy().revision(),
        rule: open.draft.rule().map(str::to_owned),
        labels: run.state().labels().to_vec(),
        run_id: Arc::clone(run.identity()),
        session_id: options.session.clone(),
        conversation_id: options.conversation.clone(),
        caller: options.caller.clone(),
        repair: open.draft.repair().cloned(),
        started_at: open.draft.started_at,
        created_at: now,
        expires_at: now.saturating_add(shared.approval_ttl).unwrap_or(jiff::Timestamp::MAX),
        suspension,
        prepared: prepared.clone(),
    };
    // The typed arguments are built again when the call is resumed.
    drop(hydrated);
    match shared.store.suspend(pending).await {
        Ok(()) => Ok(Ending::Suspended(Suspended { suspension, prepared })),
        Err(error) => {
            telemetry::not_suspended(run, &open.draft, &error);
            discard(error);
            Err(Stop::new(Outcome::Cancelled).message("The call could not be kept for later. It did not run."))
        }
    }
}

/// A suspended call that was found and compared, with what was made of the decision or the answer.
pub(super) enum Reopened<P> {
    /// It is taken out of the store: the guard gives it its end.
    Open(Box<OpenCall>, P),
    /// It does not fit this run any more, or what was given does not fit the call. It still waits.
    Mismatch(ToolExecResult),
}

/// Finds a suspended call, compares it with the run that wants it, reads what is given for it, and claims it.
///
/// `prepare` reads the decision or the answer before the call is claimed: one that does not fit leaves the call waiting
/// for the next, and no other process ever finds it missing meanwhile.
pub(super) async fn reopen<P>(
    run: &Run,
    call_id: &str,
    purpose: Purpose,
    prepare: impl FnOnce(&PendingCall) -> Result<P, Box<Refused>>,
) -> Result<Reopened<P>, ResumeError> {
    let store = &run.shared().store;
    let id = CallId::new(call_id);
    // Looked at first: a call that waits for somebody else, or for other people, stays in the store.
    let waiting = store.pending(run.id(), &id).await.map_err(|error| failed(run, error))?;
    let pending = waiting
        .filter(|pending| waiting::is_theirs(run, pending, purpose))
        .ok_or_else(|| ResumeError::NotWaiting(id.clone()))?;
    let compared = match purpose {
        Purpose::Resume(_) => waiting::compare(run, &pending),
        Purpose::Close(_) => Ok(()),
    };
    let prepared = match compared.and_then(|()| prepare(&pending)) {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(Reopened::Mismatch(waiting::refuse(run, &pending, *refused).await)),
    };
    let filter = RecordFilter::call(run.id(), id.clone());
    let own = |record: &ToolInvocationRecord| waiting::owns(run, record.principal.as_deref(), record.tenant.as_deref());
    let record = store.open_records(&filter).await.map_err(|error| failed(run, error))?.into_iter().find(own);
    let claimed = store.claim(run.id(), &id).await.map_err(|error| failed(run, error))?;
    let claimed = claimed.ok_or_else(|| ResumeError::NotWaiting(id.clone()))?;
    if !waiting::is_same(&claimed, &pending) {
        // The call was finished in the meantime, and another one, perhaps of other people, waits under its id.
        put_back(run, claimed).await;
        return Err(ResumeError::NotWaiting(id));
    }
    // No await from here on: a future that is dropped has not claimed, or leaves a record.
    // A store that could not keep the open record, or that closed it for another call under the same id, still has what
    // the record needs.
    let draft = match record {
        Some(record) => Draft::reopened(record),
        None => Draft::of_pending(&claimed),
    };
    Ok(Reopened::Open(Box::new(OpenCall::reopen(run.clone(), draft)), prepared))
}

/// Returns a call to the store that was claimed by mistake.
async fn put_back(run: &Run, call: PendingCall) {
    if let Err(error) = run.shared().store.suspend(call).await {
        drop(failed(run, error));
    }
}

fn failed(run: &Run, error: StoreError) -> ResumeError {
    ResumeError::Store(telemetry::store_unread(run, error))
}
