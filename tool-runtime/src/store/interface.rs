//! [`Store`]: the data that must outlive a process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::call::ToolInvocationRecord;
use crate::store::pages::Search;
use crate::store::pending::PendingCall;
use crate::store::transaction::returning;
use crate::store::write_handle::WriteHandle;
use crate::store::{AuditRecord, Finding, SealedRecord};
use crate::store::{
    ChangeFn, Document, DocumentKind, DueRun, Key, Query, QueueDepth, RecordFilter, StoreError, StoredDocument,
    Waiting, due,
};

/// Keeps documents, which change in transactions, and records, which do not change.
///
/// There are two exceptions ([`Transaction::into_writes`](crate::store::Transaction::into_writes)): the records of a
/// whole run are removed, or the contents of one record are replaced while its place and its hash stay. Only a
/// transaction of this library does that, and it appends a signed record of the change.
///
/// A document is opaque to a store: a [`Key`], a time from which it is due, and text. The [`ChangeFn`]s that this
/// library hands over decide its meaning: a store locks, reads, runs the change and writes.
/// `tool_runtime::testing::conformance` checks an implementation against these rules.
///
/// The runner contains panics of every method and reports them. It does not limit how long a method takes: a call waits
/// for the handle of its record before its result is returned, so a store sets its own timeouts.
/// [`MemoryStore`](crate::store::MemoryStore) is an implementation to start from.
///
/// ```
/// use tool_runtime::store::{MemoryStore, RecordFilter, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let records = store.records(&RecordFilter::run("run-1")).await?;
/// assert!(records.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait Store: Send + Sync {
    /// Appends a record to the chain of its run. It must return without blocking, because it is also called while a
    /// future is dropped; the handle resolves once the record is stored, or could not be. It has the effect of an
    /// [`update`](Self::update) that names [`Key::run`] and calls
    /// [`Transaction::append`](crate::store::Transaction::append), which refuses the record of a run that was purged or
    /// erased.
    fn append(&self, record: AuditRecord) -> WriteHandle;

    /// Changes documents: locks every key ([`Key::lock`], in order), reads the documents, runs the change, and writes
    /// its documents and records atomically.
    ///
    /// Like [`append`](Self::append), it returns without blocking, and the change happens even if the handle is
    /// dropped. Changes of one process that have a lock in common happen in the order in which they were handed over.
    /// The handle resolves to the error of the change, if it returned one.
    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle;

    /// Reads documents, in the order of the keys.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError>;

    /// Lists documents, in the order in which they were first written. It may return fewer documents than the
    /// [limit](Query::limit): only an empty page marks the end.
    ///
    /// # Errors
    /// The store cannot be reached, or a document cannot be read. A store that names the first such document
    /// ([`Finding::unreadable_document`](crate::store::Finding::unreadable_document), with its position) lets searches
    /// continue behind it.
    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError>;

    /// Returns records, each sealed into the chain of its run, in the order in which they were appended.
    ///
    /// With a [`RecordFilter::limit`] it may return fewer records than the limit, so that a page of large records is
    /// bounded, too: only an empty page marks the end of the records.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError>;

    /// Resolves once every write handed over before is stored. Call it before the process ends.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn flush(&self) -> Result<(), StoreError>;

    /// Returns the store's time, which its transactions use too. This time alone decides which documents are due or
    /// have expired and which leases have ended; the clocks of the processes play no part.
    ///
    /// By default it runs a transaction that changes nothing; a store with a cheaper request overrides this.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let (change, returned) = returning(|transaction| Ok(transaction.now()));
        self.update(Vec::new(), change).await?;
        returned()
    }

    /// Resolves when a due document other than a notice may have been written, and after a second at the latest. It may
    /// resolve spuriously, so the caller lists the due documents again.
    async fn changed(&self) {
        tokio::time::sleep(POLL).await;
    }

    /// Lists the runs that are due at `now`, the longest due ones first, at most `limit`: all of them, or those of a
    /// lane ([`StoredDocument::lane`]). A list that is shorter than the limit has all of them: a store with its own
    /// limit reads several pages.
    ///
    /// The default reads the texts of all due runs. A store of many runs overrides it, so that each poll of a worker
    /// reads a bounded number of rows.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        due::due_runs(self, now, lane, limit).await
    }

    /// Returns the run that is due first of each lane after this one, in the order of the lanes' bytes, at most
    /// `limit`. Lanes of which no run is due at `now` may be among them, so that a page costs the same however many
    /// such lanes there are. A list that is shorter than the limit has all lanes after this one of which a run is due.
    ///
    /// The default reads the texts of all due runs, see [`due_runs`](Self::due_runs).
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        due::lanes(self, now, after, limit).await
    }

    /// Counts the runs that workers share, at a time of the store: all of them, or those of a tenant, whose lanes begin
    /// with this text and a slash.
    ///
    /// The default reads the texts of all runs, see [`due_runs`](Self::due_runs).
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn depth(&self, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
        due::depth(self, now, tenant).await
    }

    /// Returns the records of calls, without the decisions on them.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn calls(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        let records = self.records(filter).await?;
        Ok(records
            .into_iter()
            .filter_map(|sealed| match sealed.record {
                AuditRecord::Call(record) => Some(*record),
                AuditRecord::Erased(record) => record.as_call().cloned(),
                AuditRecord::Decision(_) | AuditRecord::Retention(_) => None,
            })
            .collect())
    }

    /// Returns the open records of suspended calls, oldest first.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        let waiting = waiting(self, filter).await?.into_iter();
        waiting.map(|waiting| waiting.map(|waiting| waiting.record).map_err(StoreError::from)).collect()
    }

    /// Returns suspended calls, oldest first. The filter's run, call, tool, principal, tenant and times of arrival
    /// apply. Calls that cannot be read, such as those of a newer version of the library, are errors at the end,
    /// whatever the filter.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn pending_calls(&self, filter: &RecordFilter) -> Result<Vec<Result<PendingCall, Finding>>, StoreError> {
        let waiting = waiting(self, filter).await?.into_iter();
        Ok(waiting.map(|waiting| waiting.map(|waiting| waiting.call)).collect())
    }

    /// Returns the suspended call under this key, which [`Key::waiting`] makes. `None` if there is none.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn pending(&self, key: &Key) -> Result<Option<PendingCall>, StoreError> {
        let document = self.read(std::slice::from_ref(key)).await?.pop().flatten();
        Ok(match document.map(|stored| stored.document) {
            Some(Document::Waiting(waiting)) => Some(waiting.call),
            _ => None,
        })
    }
}

/// The interval at which due documents are listed when no store reports a change.
pub(super) const POLL: Duration = Duration::from_secs(1);

/// Reads suspended calls. Those that cannot be read are at the end.
async fn waiting<S: Store + ?Sized>(
    store: &S,
    filter: &RecordFilter,
) -> Result<Vec<Result<Waiting, Finding>>, StoreError> {
    let query = Query { scope: filter.run_id.clone(), ..Query::new(DocumentKind::Waiting) };
    let (mut search, mut found, mut broken) = (Search::of(query), Vec::new(), Vec::new());
    while let Some(page) = search.next_reporting(store, |finding| broken.push(Err(finding))).await? {
        found.extend(page.into_iter().filter_map(|listed| match listed.document {
            Document::Waiting(waiting) if filter.matches_call(&waiting.record) => Some(Ok(*waiting)),
            _ => None,
        }));
    }
    found.append(&mut broken);
    Ok(found)
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        (**self).append(record)
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        (**self).update(keys, change)
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        (**self).read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        (**self).list(query).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        (**self).records(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        (**self).flush().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        (**self).now().await
    }

    async fn changed(&self) {
        (**self).changed().await;
    }

    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        (**self).due_runs(now, lane, limit).await
    }

    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        (**self).lanes(now, after, limit).await
    }

    async fn depth(&self, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
        (**self).depth(now, tenant).await
    }
}
