//! The sweep removes expired documents, so that a store does not grow with every caller that it has served.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::ledger::after;
use crate::store::pages::Search;
use crate::store::retention::guards::{holds_on, is_held};
use crate::store::transact;
use crate::store::{
    Document, DocumentKind, Key, LedgerEntry, Query, Store, StoreError, StoredDocument, Transaction, ledger,
};

/// How long a document stays after it has expired. If the store's clock jumps back by less than this time, the document
/// still exists.
pub(crate) const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// The maximum number of documents that one transaction removes, which bounds how long their locks are held.
const BATCH: usize = 64;

/// The kinds of documents that expire at their due time.
const EXPIRING: [DocumentKind; 5] =
    [DocumentKind::Account, DocumentKind::Grant, DocumentKind::Decided, DocumentKind::Effect, DocumentKind::Slots];

/// Closes the calls that `wanted` selects, if their lease has ended and no process continues them
/// ([`ledger::close_left`]). Returns how many it closed.
///
/// # Errors
/// The store cannot be reached, or its contents cannot be read. Calls closed before the error stay closed.
pub(crate) async fn close_abandoned(store: &dyn Store, wanted: fn(&LedgerEntry) -> bool) -> Result<u64, StoreError> {
    let query = Query { due: Some(store.now().await?), limit: BATCH, ..Query::new(DocumentKind::Call) };
    let (mut search, mut closed) = (Search::of(query), 0);
    while let Some(page) = search.next(store).await? {
        for StoredDocument { key, document, .. } in page {
            let Document::Call(entry) = document else { continue };
            if !wanted(&entry) {
                continue;
            }
            // A waiting call that cannot be read does not prevent other calls from being closed.
            let is_orphan = search.noted(ledger::is_orphan(store, &key, &entry).await).unwrap_or_default();
            let keys = ledger::keys_of(&key, &entry);
            let close = move |transaction: &mut Transaction| ledger::close_left(transaction, &key, is_orphan);
            let is_closed = search.noted(transact(store, keys, close).await);
            closed += u64::from(is_closed.unwrap_or_default());
        }
    }
    search.end().map(|()| closed)
}

impl dyn Store + '_ {
    /// Removes documents a week after they have expired. An account expires at the end of its window, an effect key
    /// after the time for which its result is kept (`once_for`), and the count of a tenant's leased runs when the last
    /// lease ends. Grants and marks of decided calls have an explicit expiry time. A notice is removed a week after it
    /// was delivered or given up, or after a week in which no process sent it. Returns how many documents it removed. A
    /// grant, an effect key or a notice that a [legal hold](crate::store::LegalHold) covers stays, and is checked again
    /// after a week.
    ///
    /// Also closes calls that began and whose lease has ended, if no process continues their run: for example, a
    /// service without workers or an MCP server has died. Such a call ends as `outcome_unknown`, with the cause `lost`.
    /// If its tool may reconcile or repeat it, the call stays open for a week, and
    /// [`ToolRunner::sweep`](crate::ToolRunner::sweep) of a process that has the tool can continue it. Its outcome is
    /// treated as unknown meanwhile. If the store has the conversation of the run, the run becomes due instead, and the
    /// worker that takes it lets the tools reconcile or repeat its calls. A run that a worker has is left alone. The
    /// calls of a run that an engine continues are left alone for a week after their leases have ended. A service that
    /// restores its own runs has to restore them before their leases end, or before it calls this function.
    /// [`unfinished_calls`](trait@Store#method.unfinished_calls) lists the calls that are still open.
    ///
    /// A worker calls this function on a timer. A service without workers calls it itself, for example once an hour, in
    /// one process or in several. Each transaction of a sweep removes up to 64 documents, and checks each of them
    /// again. All other documents stay: records and anchors are the history, calls of the ledger must not begin again,
    /// and suspended calls and runs belong to their owners.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tool_runtime::store::{MemoryStore, Store};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    /// let removed = store.sweep().await?;
    /// assert_eq!(removed, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read. Documents removed before the error stay removed.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        let now = self.now().await?;
        let mut swept = close_abandoned(self, |_| true).await.map(drop);
        let week = now.saturating_sub(KEPT).unwrap_or(Timestamp::MIN);
        // The due time of a notice already includes the week.
        let kinds = EXPIRING.map(|kind| (kind, week)).into_iter().chain([(DocumentKind::Notice, now)]);
        let mut removed = 0;
        for (kind, due) in kinds {
            let mut search = Search::of(Query { due: Some(due), limit: BATCH, ..Query::new(kind) });
            while let Some(page) = search.next(self).await? {
                // A notice that has yet to be sent is due as well. It stays, so its run need not be locked.
                let over: Vec<_> = page.into_iter().filter(|listed| is_over(&listed.document, now)).collect();
                removed += search.noted(remove_over(self, &over).await).unwrap_or_default();
            }
            swept = swept.and(search.end());
        }
        swept.map(|()| removed)
    }
}

/// Removes the listed documents that expired long enough ago, unless a legal hold covers them. Returns how many it
/// removed.
pub(crate) async fn remove_over(store: &dyn Store, listed: &[StoredDocument]) -> Result<u64, StoreError> {
    remove_if(store, listed, is_over).await
}

/// Removes the listed documents that `is_over` selects in the transaction, unless a legal hold covers them. All code
/// that removes a document that can be evidence calls this function. Returns how many it removed.
pub(in crate::store) async fn remove_if(
    store: &dyn Store,
    listed: &[StoredDocument],
    is_over: impl Fn(&Document, Timestamp) -> bool + Clone + Send + 'static,
) -> Result<u64, StoreError> {
    let mut removed = 0;
    for listed in listed.chunks(BATCH) {
        let keys: Vec<_> = listed.iter().map(|listed| listed.key.clone()).collect();
        let holds: BTreeSet<_> = listed.iter().flat_map(|listed| holds_on(&listed.document)).collect();
        let (locked, is_over) = (keys.iter().chain(&holds).cloned().collect(), is_over.clone());
        removed += transact(store, locked, move |transaction| forget(transaction, &keys, &holds, &is_over)).await?;
    }
    Ok(removed)
}

/// Removes the documents that `is_over` selects, unless a legal hold covers them. The transaction has locked the keys
/// `holds`.
fn forget(
    transaction: &mut Transaction,
    keys: &[Key],
    holds: &BTreeSet<Key>,
    is_over: impl Fn(&Document, Timestamp) -> bool,
) -> Result<u64, StoreError> {
    let (now, mut removed) = (transaction.now(), 0);
    for key in keys {
        let Some(document) = transaction.get(key).filter(|document| is_over(document, now)) else { continue };
        let own = holds_on(document);
        if own.iter().any(|hold| is_held(transaction.get(hold))) {
            // Otherwise, every sweep would read the held document again.
            if let Some(kept) = document.on_hold(now) {
                transaction.set(key, kept)?;
            }
        } else if own.iter().all(|hold| holds.contains(hold)) {
            transaction.remove(key)?;
            removed += 1;
        }
        // Otherwise, the owner of the document has changed since it was listed. The next sweep locks the right holds.
    }
    Ok(removed)
}

/// Whether a document expired long enough ago. The due time of a notice already includes the week for which it is kept.
fn is_over(document: &Document, now: Timestamp) -> bool {
    let kept = if let Document::Notice(_) = document { Duration::ZERO } else { KEPT };
    document.over().is_some_and(|over| after(over, kept) <= now)
}
