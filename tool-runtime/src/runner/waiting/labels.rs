//! Copies labels that a run gains to its waiting calls in the store, so that a process that carries out a decision
//! without the run has them.

use std::sync::Arc;

use crate::contain::discard;
use crate::runner::Run;
use crate::runner::ledger::client::LedgerClient;
use crate::store::{Key, PendingCall, RecordFilter, Store as _, StoreError};

/// Adds the run's labels to its waiting calls, if the run has gained a label since the last call of this function. If
/// the store fails, the end of the run's next call repeats the write.
pub(in crate::runner) async fn share(run: &Run) {
    let Some(labels) = run.remembered().unshared() else { return };
    let shared = async {
        for call in run.shared().store.pending_calls(&RecordFilter::run(Arc::clone(run.identity()))).await? {
            add(run, &call?).await?;
        }
        Ok::<_, StoreError>(())
    };
    match Box::pin(shared).await {
        Ok(()) => run.remembered().shared(labels.len()),
        Err(error) => discard(run.store_unread(error)),
    }
}

/// Adds the labels that the run gained while this call was being suspended.
pub(in crate::runner) async fn share_with(run: &Run, suspended: &PendingCall) {
    if let Err(error) = Box::pin(add(run, suspended)).await {
        discard(run.store_unread(error));
    }
}

async fn add(run: &Run, call: &PendingCall) -> Result<(), StoreError> {
    let labels = run.labels();
    if run.owns(call.principal.as_deref(), call.tenant.as_deref()) && call.lacks(&labels) {
        LedgerClient(run).gain(Key::of_waiting(call), labels).await?;
    }
    Ok(())
}
