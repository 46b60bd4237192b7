//! [`sweep`]: removes what means nothing any more, so that a store does not grow with everybody who ever came by.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::ledger::after;
use crate::store::transaction::returning;
use crate::store::{
    Clock as _, Document, Key, Listed, Query, Space, Store, StoreError, SystemClock, Transaction, ledger,
};

/// How long a document is kept after it stopped to mean anything: a clock that jumps back by less finds it as it was.
const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// How many documents one transaction removes at most, so that nobody waits long for their locks.
const BATCH: usize = 64;

/// Closes calls that began and whose process is gone, of runs that end with their process: their records say that nobody
/// saw their end. Those of any other run are left to the process that continues it, because the tool may reconcile or repeat them.
/// Returns how many it closed.
///
/// # Errors
/// The store cannot be reached, or what it holds cannot be read. What was closed before stays closed.
pub(crate) async fn close_deserted(store: &dyn Store, now: Timestamp) -> Result<u64, StoreError> {
    let mut query = Query { due: Some(now), limit: BATCH, ..Query::new(Space::Call) };
    let mut closed = 0;
    loop {
        let page = store.list(&query).await?;
        let Some(last) = page.last() else { return Ok(closed) };
        query.after = last.position;
        for Listed { key, document, .. } in page {
            if !matches!(&document, Document::Call(entry) if entry.ends_with_process) {
                continue;
            }
            let keys = vec![Key::run(Arc::clone(key.scope())), key.clone()];
            let (change, returned) = returning(move |transaction| ledger::close_unseen(transaction, &key, None));
            store.update(keys, change).await?;
            closed += u64::from(returned()?);
        }
    }
}

/// Removes accounts whose window ended a week ago, grants that expired a week ago, and marks of decided calls that would
/// have expired a week ago. Returns how many it removed.
///
/// Calls that a server of MCP began and whose process is gone are closed as `outcome_unknown`. Those of other runs are left
/// to the process that continues the run.
///
/// A worker calls it on a timer; a service without workers calls it itself, once an hour for example, in one process
/// or in several. It removes up to 64 documents in a transaction, each after another look at it. Everything else is
/// kept: records and anchors because they are the history, calls of the ledger because none of them may begin again,
/// calls that wait and runs because they belong to somebody.
///
/// ```
/// use tool_runtime::store::{MemoryStore, sweep};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let removed = sweep(&MemoryStore::new()).await?;
/// assert_eq!(removed, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The store cannot be reached, or what it holds cannot be read. What was removed before stays removed.
pub async fn sweep(store: &dyn Store) -> Result<u64, StoreError> {
    let now = SystemClock.now();
    close_deserted(store, now).await?;
    let due = now.saturating_sub(KEPT).unwrap_or(Timestamp::MIN);
    let mut removed = 0;
    for space in [Space::Account, Space::Grant, Space::Decided] {
        let mut query = Query { due: Some(due), limit: BATCH, ..Query::new(space) };
        loop {
            let page = store.list(&query).await?;
            let Some(last) = page.last() else { break };
            query.after = last.position;
            let keys: Vec<_> = page.into_iter().map(|listed| listed.key).collect();
            let named = keys.clone();
            let (change, returned) = returning(move |transaction| forget(transaction, &named));
            store.update(keys, change).await?;
            removed += returned()?;
        }
    }
    Ok(removed)
}

/// Removes those of the documents that have meant nothing for long enough. Returns how many.
fn forget(transaction: &mut Transaction, keys: &[Key]) -> Result<u64, StoreError> {
    let (now, mut removed) = (transaction.now(), 0);
    for key in keys {
        let over = transaction.get(key).and_then(Document::over);
        if over.is_some_and(|over| after(over, KEPT) <= now) {
            transaction.remove(key)?;
            removed += 1;
        }
    }
    Ok(removed)
}
