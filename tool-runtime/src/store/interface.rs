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

/// A store of documents, which transactions change, and of records, which do not change.
///
/// A record changes in two cases only ([`Transaction::into_writes`](crate::store::Transaction::into_writes)): a
/// transaction of this library can remove all records of a run, or replace the contents of one record, whose place and
/// hash stay. The transaction then appends a signed record of the change.
///
/// A document has a [`Key`], a time from which it is due, and text that is opaque to the store. The [`ChangeFn`]s of
/// this library determine its meaning. A store locks the keys, reads the documents, runs the change and writes the
/// result. `tool_runtime::testing::conformance` checks an implementation against these rules.
///
/// The runner catches and reports panics of every method. It sets no timeouts. A call returns its result only after the
/// handle of its record resolves, so a store has to limit the time itself. [`MemoryStore`](crate::store::MemoryStore)
/// is an implementation to start from.
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
    /// while a future is dropped. The handle resolves once the record is stored or could not be stored. The method is
    /// equivalent to an [`update`](Self::update) that names [`Key::run`] and calls
    /// [`Transaction::append`](crate::store::Transaction::append), so it fails if the run was purged or erased.
    fn append(&self, record: AuditRecord) -> WriteHandle;

    /// Changes documents: takes the locks of all keys ([`Key::lock`]) in sorted order, reads the documents, runs the
    /// change, and writes its documents and records atomically.
    ///
    /// Like [`append`](Self::append), the method returns without blocking. The change happens even if the handle is
    /// dropped. Changes of one process that share a lock happen in the order in which the process called this method.
    /// If the change returns an error, the handle resolves to that error.
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
    /// The store cannot be reached, or a document cannot be read. If the error is a
    /// [`Finding::unreadable_document`](crate::store::Finding::unreadable_document) with a position, searches continue
    /// after that document.
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

    /// Returns the store's time, which is also the time of its transactions. Only this time decides which documents are
    /// due or have expired, and which leases have ended. The clocks of the processes are not used.
    ///
    /// The default implementation runs a transaction that changes nothing. Override the method if the store can read
    /// its time at a lower cost.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        transact(self, Vec::new(), |transaction| Ok(transaction.now())).await
    }

    /// Waits until a due document might have been written, for at most a second. A written notice need not end the
    /// wait. The wait can end early, so the caller has to list the due documents again.
    async fn changed(&self) {
        tokio::time::sleep(POLL).await;
    }

    /// Lists at most `limit` runs that are due at `now`, in the order of their due times. `lane` selects the runs of
    /// one lane ([`StoredDocument::lane`]); `None` lists the runs of all lanes. A list that is shorter than the limit
    /// is complete, so a store with a smaller page size has to read several pages.
    ///
    /// The default implementation reads the texts of all due runs. A store for many runs should override it, so that
    /// each poll of a worker reads a bounded number of rows.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        due::due_runs(self, now, lane, limit).await
    }

    /// Returns the run that is due first in each lane after `after`. The list has at most `limit` lanes, in the order
    /// of their bytes. Lanes without a run that is due at `now` may be included, so that the cost of a page does not
    /// depend on the number of such lanes. If the list is shorter than the limit, no later lane has a due run.
    ///
    /// The default implementation reads the texts of all due runs, see [`due_runs`](Self::due_runs).
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        due::lanes(self, now, after, limit).await
    }

    /// Counts the runs that workers share, at the store's time `now`. `tenant` selects the runs of one tenant, whose
    /// lanes begin with this text and a slash; `None` counts all runs.
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

    /// Returns the open records of suspended calls, which are not in the chains yet, oldest first.
    ///
    /// # Errors
    /// The store cannot be reached, or its contents cannot be read.
    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        let waiting = waiting(self, filter).await?.into_iter();
        waiting.map(|waiting| waiting.map(|waiting| waiting.record).map_err(StoreError::from)).collect()
    }

    /// Returns suspended calls, oldest first. All conditions of the filter apply to the [open
    /// record](Self::open_records) of a call, except `after` and `limit`; the filter's times are compared with the
    /// arrival of the call. Calls that cannot be read, such as those of a newer version of the library, are errors at
    /// the end of the list, whatever the filter.
    ///
    /// # Errors
    /// The store cannot be reached.
    async fn pending_calls(&self, filter: &RecordFilter) -> Result<Vec<Result<PendingCall, Finding>>, StoreError> {
        let waiting = waiting(self, filter).await?.into_iter();
        Ok(waiting.map(|waiting| waiting.map(|waiting| waiting.call)).collect())
    }

    /// Returns the suspended call under a key that [`Key::waiting`] made. `None` if there is none.
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
        // A store can run the change again, so each run overwrites the value of the previous one.
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(change(transaction)?);
        Ok(())
    };
    store.update(keys, Box::new(change)).await?;
    let returned = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    returned.ok_or(StoreError::Lost)
}

/// The interval at which due documents are listed if the store reports no change.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// Reads suspended calls. Calls that cannot be read are errors at the end of the list.
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
