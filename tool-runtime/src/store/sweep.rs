//! [`sweep`]: removes what means nothing any more, so that a store does not grow with everybody who ever came by.

use std::time::Duration;

use jiff::Timestamp;

use crate::store::ledger::after;
use crate::store::transaction::returning;
use crate::store::{Clock as _, Document, Key, Query, Space, Store, StoreError, SystemClock, Transaction};

/// How long a document is kept after it stopped to mean anything: a clock that jumps back by less finds it as it was.
const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// How many documents one transaction removes at most, so that nobody waits long for their locks.
const BATCH: usize = 64;

/// Removes accounts whose window ended a week ago, grants that expired a week ago, and marks of decided calls that would
/// have expired a week ago. Returns how many it removed.
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
    let due = SystemClock.now().saturating_sub(KEPT).unwrap_or(Timestamp::MIN);
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
