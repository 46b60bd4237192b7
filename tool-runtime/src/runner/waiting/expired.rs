//! Ends expired calls of runs that no process continues.

use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::call::{Caller, Suspension};
use crate::contain::discard;
use crate::runner::ledger::recover;
use crate::runner::waiting::posting;
use crate::runner::{ResumeError, RunOptions, ToolRunner};
use crate::store::ledger::{self, after};
use crate::store::pages::Search;
use crate::store::{
    Document, DocumentKind, KEPT, PendingCall, Query, Store as _, StoreError, StoredDocument, StoredRun,
};

/// Ends waiting calls that have expired. If this runner does not have the tool, it ends the call a week later. It
/// leaves a call in a stored conversation to the worker of the run, and a call of an engine to the engine for a week.
/// Ends no further call after `stop` fires.
pub(in crate::runner) async fn expire_left(runner: &ToolRunner, stop: &CancellationToken) -> Result<(), StoreError> {
    let store = &runner.shared.store;
    let now = store.now().await?;
    let mut search = Search::of(Query { due: Some(now), ..Query::new(DocumentKind::Waiting) });
    while let Some(page) = search.next(store).await? {
        for StoredDocument { document, .. } in page {
            if stop.is_cancelled() {
                return search.end();
            }
            let Document::Waiting(waiting) = document else { continue };
            let call = &waiting.call;
            // After a week, assume that no process has the tool any more.
            if runner.shared.catalog.entry(call.tool.as_str()).is_some() || now >= after(call.expires_at, KEPT) {
                // After an error with one call, the next calls are ended nevertheless.
                search.note(expire_if_left(runner, call, now).await);
            }
        }
    }
    search.end()
}

async fn expire_if_left(runner: &ToolRunner, call: &PendingCall, now: Timestamp) -> Result<(), StoreError> {
    let has_owner = match &call.caller {
        // The call ends together with its graph's own call, unless that call is already over.
        Caller::Graph { run, .. } => ledger::has_graph(&**runner.store(), run, &call.run_id).await?,
        Caller::Direct => has_owner(runner, call, now).await?,
    };
    if has_owner { Ok(()) } else { expire(runner, call).await }
}

/// Whether a worker or an engine continues the run of a call. An engine loses its run a week after the call expired,
/// because it does not report a cancelled workflow.
async fn has_owner(runner: &ToolRunner, call: &PendingCall, now: Timestamp) -> Result<bool, StoreError> {
    let query = Query { scope: Some(Arc::clone(&call.run_id)), limit: 1, ..Query::new(DocumentKind::Run) };
    let stored = runner.shared.store.list(&query).await?.pop();
    let run = stored.as_ref().and_then(StoredDocument::as_run);
    let is_its = |run: &&StoredRun| run.is_of(call.principal.as_ref(), call.tenant.as_ref());
    let is_left = |run: &StoredRun| run.is_served() || (run.is_driven() && now >= after(call.expires_at, KEPT));
    Ok(run.filter(is_its).is_some_and(|run| !is_left(run)))
}

async fn expire(runner: &ToolRunner, call: &PendingCall) -> Result<(), StoreError> {
    let run = match call.caller {
        Caller::Graph { .. } => Some(runner.run(recover::options_of(call, &RunOptions::new()))),
        Caller::Direct => posting::run_of(runner, call, None, &RunOptions::new()),
    };
    let Some(run) = run else { return Ok(()) };
    let ended = match call.suspension {
        Suspension::Approval => Box::pin(run.expire(&call.question())).await,
        Suspension::Client => Box::pin(run.abandon(call.call_id.as_str())).await,
    };
    match ended {
        Err(ResumeError::Store(error)) => Err(error),
        // Meanwhile a person decided on the call.
        Err(error) => {
            discard(error);
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}
