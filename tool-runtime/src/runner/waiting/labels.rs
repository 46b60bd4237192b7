//! Labels that a run gains while its calls wait. They are added to the stored calls, so that a process that decides on
//! a call without its run knows the labels.

use std::sync::Arc;

use crate::contain::discard;
use crate::runner::Run;
use crate::runner::ledger::client::LedgerClient;
use crate::store::{Key, PendingCall, RecordFilter, Store as _, StoreError};

/// Adds the run's labels to its waiting calls, if the run gained a label since the last time. If the store fails, the
/// next call of the run tries again.
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
