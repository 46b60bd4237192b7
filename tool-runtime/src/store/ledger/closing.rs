//! Decides which process closes an abandoned call, and when.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Caller, ToolInvocationRecord};
use crate::store::effects::{self, Settlement};
use crate::store::ledger::{LedgerEntry, after, ended_outside};
use crate::store::notices;
use crate::store::pages::Search;
use crate::store::runs::{self, RunLease};
use crate::store::sweep::KEPT;
use crate::store::{
    Document, DocumentKind, Key, Query, Store, StoreError, StoredDocument, StoredRun, Transaction, UnknownCall,
};

/// The longest interval at which a call that was left open makes its run due for a worker.
const AGAIN: Duration = Duration::from_secs(60 * 60);

/// Whether a call has begun and not ended, and its owner can no longer write.
///
/// `held` is the lease of the worker that has the run now, or `None` for a caller without one. With a lease, a call of
/// the run's earlier worker is abandoned even before that worker's own lease on the call ends.
pub(crate) fn is_abandoned(transaction: &Transaction, key: &Key, held: Option<&RunLease>) -> bool {
    let (now, worker) = (transaction.now(), held.map(|lease| lease.epoch));
    matches!(transaction.get(key), Some(Document::Call(entry)) if !entry.is_finished() && entry.is_abandoned(now, worker))
}

/// Closes a call that [is abandoned](is_abandoned) as `outcome_unknown`. Returns whether it was closed.
pub(crate) fn close_abandoned(
    transaction: &mut Transaction,
    key: &Key,
    held: Option<&RunLease>,
) -> Result<bool, StoreError> {
    let now = transaction.now();
    close_if(transaction, key, held, |entry| entry.is_abandoned(now, held.map(|lease| lease.epoch)))
}

/// Closes a call inside a graph (an agent or a script that runs as a tool) as `outcome_unknown`, because the call of
/// the graph has ended. Returns whether it was closed.
pub(crate) fn close_orphan(
    transaction: &mut Transaction,
    key: &Key,
    held: Option<&RunLease>,
) -> Result<bool, StoreError> {
    close_if(transaction, key, held, |_| true)
}

fn close_if(
    transaction: &mut Transaction,
    key: &Key,
    held: Option<&RunLease>,
    is_over: impl FnOnce(&LedgerEntry) -> bool,
) -> Result<bool, StoreError> {
    let Some(Document::Call(entry)) = transaction.get(key) else { return Ok(false) };
    let mut entry = entry.clone();
    if entry.is_finished() || !is_over(&entry) {
        return Ok(false);
    }
    // The call has no owner from now on. Otherwise, the attempt that began it could take this end for its own.
    (entry.owner, entry.epoch) = ("".into(), entry.epoch + 1);
    entry.record.ended_at = Some(transaction.now());
    let waited = entry.waited.take().filter(|_| entry.recoverable);
    if let Some(effect) = entry.effect_key() {
        effects::ended(transaction, (&effect, None), key, &entry.record, waited)?;
        entry.effect = entry.effect.take().filter(|_| entry.is_unknown());
    }
    notices::ended(transaction, entry.notices.take().as_deref(), &entry.record)?;
    transaction.append((*entry.record).clone())?;
    let (principal, tenant) = (entry.record.principal.clone(), entry.record.tenant.clone());
    transaction.set(key, Document::Call(entry))?;
    ended_outside(transaction, key.scope(), (principal.as_ref(), tenant.as_ref()), held)?;
    Ok(true)
}

/// Returns the id of the run that a process has to continue so that the call is continued: for a call inside a graph,
/// the run that called the graph.
fn continued_in(key: &Key, entry: &LedgerEntry) -> Arc<str> {
    match &entry.record.caller {
        Caller::Graph { run, .. } => run.as_str().into(),
        Caller::Direct => Arc::clone(key.scope()),
    }
}

/// Returns the keys that a transaction needs for [`is_left`] and [`close_left`].
pub(crate) fn keys_of(key: &Key, entry: &LedgerEntry) -> Vec<Key> {
    let mut keys = vec![Key::run_head(Arc::clone(key.scope())), key.clone()];
    let continued = Key::run_head(continued_in(key, entry));
    if !keys.contains(&continued) {
        keys.push(continued);
    }
    keys.extend(entry.effect_key());
    keys
}

/// Whether a call was made inside a graph whose own call has ended.
pub(crate) async fn is_orphan(store: &dyn Store, key: &Key, entry: &LedgerEntry) -> Result<bool, StoreError> {
    match &entry.record.caller {
        Caller::Graph { run, .. } => Ok(!has_graph(store, run, key.scope()).await?),
        Caller::Direct => Ok(false),
    }
}

/// Whether `run` has an open call of the graph that works in the run `graph`: the call waits, or has begun and not
/// ended. A `read_only` graph that needed no approval is not in the ledger while it works, so it is not found.
pub(crate) async fn has_graph(store: &dyn Store, run: &str, graph: &str) -> Result<bool, StoreError> {
    let query = |kind| Query { scope: Some(run.into()), ..Query::new(kind) };
    let begun = Query { due: Some(Timestamp::MAX), ..query(DocumentKind::Call) };
    let is_its = |listed: &StoredDocument| match &listed.document {
        Document::Waiting(waiting) => waiting.call.graph.as_ref().is_some_and(|pending| *pending.run_id == *graph),
        Document::Call(entry) => !entry.is_finished() && entry.graph.as_deref() == Some(graph),
        _ => false,
    };
    for query in [query(DocumentKind::Waiting), begun] {
        let mut search = Search::of(query);
        while let Some(page) = search.next(store).await? {
            if page.iter().any(is_its) {
                return Ok(true);
            }
        }
        search.end()?;
    }
    Ok(false)
}

/// Whether a call's lease has ended and no process continues its run. The sweep uses this rule. A call inside a graph
/// belongs to the run that called the graph, unless it [is an orphan](is_orphan) and that run is idle.
///
/// If the store has the document of the run, the run is made due instead. The worker that takes the run lets the tool
/// reconcile or repeat the call, or closes the call. The result is also `false` while a worker has a lease on the run.
/// For a run that an engine continues, it is `false` until a week after the call's lease has ended.
pub(crate) fn is_left(transaction: &mut Transaction, key: &Key, is_orphan: bool) -> Result<bool, StoreError> {
    let now = transaction.now();
    let Some(Document::Call(entry)) = transaction.get(key) else { return Ok(false) };
    if entry.is_finished() || !entry.is_abandoned(now, None) {
        return Ok(false);
    }
    let continued = continued_in(key, entry);
    let run = match transaction.get(&Key::run(Arc::clone(&continued))) {
        // Two tenants can have runs with the same id.
        Some(Document::Run(run))
            if !entry.ends_with_process
                && !run.is_served()
                && run.is_of(entry.record.principal.as_ref(), entry.record.tenant.as_ref()) =>
        {
            run
        }
        _ => return Ok(true),
    };
    // An engine whose workflow was cancelled never continues the run, and does not report the cancellation.
    if run.is_driven() && now >= after(entry.until, KEPT) {
        return Ok(true);
    }
    let is_idle = !run.is_held(now) && run.due.is_none_or(|due| now < due);
    if is_idle && !is_orphan && may_wake(entry, run, now) {
        runs::wake(transaction, &continued)?;
    }
    Ok(is_idle && is_orphan)
}

/// Whether a call makes its run due. If a worker left the call open, the next worker may not be able to continue it
/// either. The interval therefore doubles each time, up to an hour.
fn may_wake(entry: &LedgerEntry, run: &StoredRun, now: Timestamp) -> bool {
    let was_left = run.changed.filter(|changed| entry.owner.is_empty() && *changed >= entry.until);
    was_left.is_none_or(|changed| {
        let open: Duration = changed.duration_since(entry.until).unsigned_abs();
        // If the store's clock was set back, `changed` lies in the future.
        now < changed || now >= after(changed, open.min(AGAIN))
    })
}

/// Closes a call that [is left](is_left), or leaves it open ([`leave_or_close`]). Returns whether it was closed.
pub(crate) fn close_left(transaction: &mut Transaction, key: &Key, is_orphan: bool) -> Result<bool, StoreError> {
    if is_left(transaction, key, is_orphan)? { leave_or_close(transaction, key, None) } else { Ok(false) }
}

/// Closes an abandoned call, or leaves it open. The call is left open if its tool may reconcile or repeat it and the
/// ledger has the call as it began; a process can then take it over, until a week after the end of the call's lease.
/// Returns whether it was closed.
///
/// While a call is left open, its outcome is treated as unknown, so the next call of the same effect requires an
/// approval. The process that began the call can no longer write its end.
pub(crate) fn leave_or_close(
    transaction: &mut Transaction,
    key: &Key,
    held: Option<&RunLease>,
) -> Result<bool, StoreError> {
    let now = transaction.now();
    let entry = match transaction.get(key) {
        Some(Document::Call(entry)) if is_abandoned(transaction, key, held) => entry,
        _ => return Ok(false),
    };
    if !entry.recoverable || entry.waited.is_none() || now >= after(entry.until, KEPT) {
        return close_abandoned(transaction, key, held);
    }
    if entry.owner.is_empty() {
        // The call was already left open.
        return Ok(false);
    }
    let mut entry = entry.clone();
    // No attempt owns the call from now on, so a person may settle it.
    (entry.owner, entry.epoch, entry.until) = ("".into(), entry.epoch + 1, entry.until.min(now));
    let record = ToolInvocationRecord { ended_at: Some(now), ..(*entry.record).clone() };
    if let Some(effect) = entry.effect_key() {
        effects::ended(transaction, (&effect, None), key, &record, entry.waited.clone())?;
    }
    // The notice about the call is written now, not when the call is closed.
    notices::ended(transaction, entry.notices.take().as_deref(), &record)?;
    transaction.set(key, Document::Call(entry))?;
    Ok(false)
}

/// Settles an unknown outcome ([`effects::settle`]). A call that was left open is closed first, so that its record is
/// written. Returns `false` if the outcome was settled before, or another process has taken the call over.
pub(crate) fn settle(
    transaction: &mut Transaction,
    effect: &Key,
    call: &UnknownCall,
    settlement: &Settlement,
) -> Result<bool, StoreError> {
    let key = call.ledger_key();
    if let Some(Document::Call(entry)) = transaction.get(&key)
        && !entry.is_finished()
        && !close_abandoned(transaction, &key, None)?
    {
        return Ok(false);
    }
    effects::settle(transaction, effect, call, settlement)
}
