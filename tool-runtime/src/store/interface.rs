//! [`Store`]: the trait for all data that outlives a process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::call::ToolInvocationRecord;
use crate::store::pages::Search;
use crate::store::pending::PendingCall;
use crate::store::write_handle::WriteHandle;
use crate::store::{AuditRecord, Finding, SealedRecord};
use crate::store::{
    ChangeFn, Document, DocumentKind, DueRun, Key, Query, QueueDepth, RecordFilter, StoreError, StoredDocument,
    Transaction, Waiting, due,
};

/// Stores documents, which transactions change, and records, which do not change.
///
/// There are two exceptions ([`Transaction::into_writes`](crate::store::Transaction::into_writes)): the records of a
/// whole run are removed, or the contents of one record are replaced while its place and its hash stay. Only
/// transactions of this library do so, and they append a signed record of the change.
///
/// A document is opaque to a store: a [`Key`], a time from which it is due, and text. The [`ChangeFn`]s of this library
/// determine its meaning. A store locks the keys, reads the documents, runs the change and writes the result.
/// `tool_runtime::testing::conformance` checks an implementation against these rules.
///
/// The runner contains and reports panics of every method. It does not limit the time that a method takes: a call waits
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
    /// Appends a record to the chain of its run. The method has to return without blocking, because it is also called
    /// while a future is dropped. The handle resolves once the record is stored or could not be stored. The effect is
    /// that of an [`update`](Self::update) that names [`Key::run`] and calls
    /// [`Transaction::append`](crate::store::Transaction::append), which refuses the record of a run that was purged or
    /// erased.
    fn append(&self, record: AuditRecord) -> WriteHandle;

    /// Changes documents: locks every key ([`Key::lock`], in order), reads the documents, runs the change, and writes
    /// its documents and records atomically.
    ///
    /// Like [`append`](Self::append), the method returns without blocking. The change happens even if the handle is
    /// dropped. Changes of one process that share a lock happen in the order of the calls of this method. The handle
    /// resolves to the error of the change, if it returned one.
    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle;

    /// Reads documents, in the order of the keys.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError>;

    /// Lists documents, in the order in which they were first written. A page may have fewer documents than the
    /// [limit](Query::limit). Only an empty page marks the end.
    ///
    /// # Errors
    /// The store cannot be reached, or a document cannot be read. If a store names the first such document
    /// ([`Finding::unreadable_document`](crate::store::Finding::unreadable_document), with its position), searches
    /// continue behind it.
    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError>;

    /// Returns records, each sealed into the chain of its run, in the order in which they were appended.
    ///
    /// With a [`RecordFilter::limit`], a page may have fewer records than the limit, so that the size of a page of
    /// large records is bounded, too. Only an empty page marks the end.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError>;

    /// Resolves once every earlier write is stored. Call it before the process ends.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn flush(&self) -> Result<(), StoreError>;

    /// Returns the store's time, which its transactions use, too. Only this time decides which documents are due or
    /// have expired, and which leases have ended. The clocks of the processes are not used.
    ///
    /// The default implementation runs a transaction that changes nothing. A store with a cheaper request overrides it.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        transact(self, Vec::new(), |transaction| Ok(transaction.now())).await
    }

    /// Resolves when a due document other than a notice may have been written, and after a second at the latest. It may
    /// resolve spuriously, so the caller has to list the due documents again.
    async fn changed(&self) {
        tokio::time::sleep(POLL).await;
    }

    /// Lists at most `limit` runs that are due at `now`, longest due first: those of a lane ([`StoredDocument::lane`]),
    /// or of all lanes. A list that is shorter than the limit is complete, so a store with a limit of its own reads
    /// several pages.
    ///
    /// The default implementation reads the texts of all due runs. A store of many runs overrides it, so that each poll
    /// of a worker reads a bounded number of rows.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        due::due_runs(self, now, lane, limit).await
    }

    /// Returns, for each lane after `after`, the run that is due first. Lanes are in the order of their bytes, and
    /// there are at most `limit`. Lanes without a run that is due at `now` may be included, so that the cost of a page
    /// does not depend on their number. A list that is shorter than the limit includes all later lanes with a due run.
    ///
    /// The default implementation reads the texts of all due runs, see [`due_runs`](Self::due_runs).
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        due::lanes(self, now, after, limit).await
    }

    /// Counts the runs that workers share, at a time of the store: all of them, or those of a tenant. The lanes of a
    /// tenant begin with `tenant` and a slash.
    ///
    /// The default implementation reads the texts of all runs, see [`due_runs`](Self::due_runs).
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
    /// apply. Calls that cannot be read, such as those of a newer version of the library, are errors at the end of the
    /// list, whatever the filter.
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

/// Runs a transaction, and returns the closure's value.
pub(crate) async fn transact<T: Send + 'static>(
    store: &(impl Store + ?Sized),
    keys: Vec<Key>,
    mut change: impl FnMut(&mut Transaction) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let answer = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&answer);
    let change = move |transaction: &mut Transaction| {
        // A store may run the change again, so each run overwrites the value of the previous one.
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(change(transaction)?);
        Ok(())
    };
    store.update(keys, Box::new(change)).await?;
    let returned = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    returned.ok_or(StoreError::Lost)
}

/// The interval at which due documents are listed if no store reports a change.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// Reads suspended calls. Those that cannot be read are at the end of the list.
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
