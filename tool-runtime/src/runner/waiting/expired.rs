//! Waiting calls whose time is over and whose run nobody continues.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::call::Suspension;
use crate::contain::discard;
use crate::runner::waiting::posting;
use crate::runner::{ResumeError, RunOptions, ToolRunner};
use crate::store::pages::Rest;
use crate::store::{Document, DocumentKind, PendingCall, Query, StoreError, StoredDocument, StoredRun};

/// Ends the waiting calls that have expired, if this runner has their tools. A call in a conversation of the store is
/// left to the worker that takes its run, and a call of an engine to the engine. Ends no further call once `stop` fires.
pub(in crate::runner) async fn expire_left(runner: &ToolRunner, stop: &CancellationToken) -> Result<(), StoreError> {
    let store = &runner.shared.store;
    let mut rest = Rest::of(Query { due: Some(store.now().await?), ..Query::new(DocumentKind::Waiting) });
    while let Some(page) = store.page(&mut rest).await? {
        for StoredDocument { document, .. } in page {
            if stop.is_cancelled() {
                return Ok(());
            }
            let Document::Waiting(waiting) = document else { continue };
            let call = waiting.call;
            if runner.shared.catalog.entry(call.tool.as_str()).is_some() && !has_owner(runner, &call).await? {
                expire(runner, &call).await?;
            }
        }
    }
    Ok(())
}

/// Whether a worker or an engine continues the run of a call.
async fn has_owner(runner: &ToolRunner, call: &PendingCall) -> Result<bool, StoreError> {
    let query = Query { scope: Some(Arc::clone(&call.run_id)), limit: 1, ..Query::new(DocumentKind::Run) };
    let stored = runner.shared.store.list(&query).await?.pop();
    let run = stored.as_ref().and_then(StoredDocument::as_run);
    let is_its = |run: &&StoredRun| (&run.tenant, &run.principal) == (&call.tenant, &call.principal);
    Ok(run.filter(is_its).is_some_and(|run| !run.is_served()))
}

async fn expire(runner: &ToolRunner, call: &PendingCall) -> Result<(), StoreError> {
    // The call of a graph ends with the call that the graph waits for.
    let Some(run) = posting::run_of(runner, call, None, &RunOptions::new()) else { return Ok(()) };
    let ended = match call.suspension {
        Suspension::Approval => Box::pin(run.expire(&call.question())).await,
        Suspension::Client => Box::pin(run.abandon(call.call_id.as_str())).await,
    };
    match ended {
        Err(ResumeError::Store(error)) => Err(error),
        // Somebody decided meanwhile.
        Err(error) => {
            discard(error);
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}
