//! [`Store`]: what must outlive a process.

use std::sync::Arc;

use async_trait::async_trait;

use crate::call::{CallId, ToolInvocationRecord};
use crate::store::StoreError;
use crate::store::pending::{PendingCall, PendingFilter};
use crate::store::receipt::Receipt;

/// Keeps records and pending calls.
///
/// A call is known by its run and its id: ids that providers make are unique within a run only.
///
/// The runner contains panics of every method and reports them. It sets no limit to how long a method takes: a call
/// waits for the receipt of its record before its result is returned, so a store sets its own timeouts. Implement it
/// below `#[async_trait]`; [`MemoryStore`](crate::store::MemoryStore) is one to start from.
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
    /// Takes a record. It must return without waiting, because it is also called while a future is dropped; the receipt
    /// resolves once the record is kept, or could not be.
    ///
    /// A record without an end is open: it is kept beside the chain and replaced by the next record of its call.
    /// A record with an end is closed and appended to the chain.
    fn put(&self, record: ToolInvocationRecord) -> Receipt;

    /// Returns closed records in the order of the chain, sealed.
    ///
    /// # Errors
    /// The store cannot be reached, or what it holds cannot be read.
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError>;

    /// Returns open records, oldest first.
    ///
    /// # Errors
    /// The store cannot be reached, or what it holds cannot be read.
    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError>;

    /// Keeps a call that waits.
    ///
    /// # Errors
    /// [`StoreError::Duplicate`] if one with the same run and id waits already; the store is full or cannot be reached.
    async fn suspend(&self, call: PendingCall) -> Result<(), StoreError>;

    /// Returns a call that waits and leaves it there. `None` if there is none.
    ///
    /// # Errors
    /// The store cannot be reached, or what it holds cannot be read.
    async fn pending(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError>;

    /// Takes a call that waits out of the store. Of any number of callers, in any number of processes, one gets it; the
    /// others get `None`.
    ///
    /// # Errors
    /// The store cannot be reached, or what it holds cannot be read.
    async fn claim(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError>;

    /// Returns calls that wait, oldest first.
    ///
    /// # Errors
    /// The store cannot be reached, or what it holds cannot be read.
    async fn list(&self, filter: &PendingFilter) -> Result<Vec<PendingCall>, StoreError>;

    /// Resolves once everything that was put before is kept. Call it before the process ends.
    ///
    /// # Errors
    /// Something that was put could not be kept.
    async fn flush(&self) -> Result<(), StoreError>;
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn put(&self, record: ToolInvocationRecord) -> Receipt {
        (**self).put(record)
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        (**self).records(filter).await
    }

    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        (**self).open_records(filter).await
    }

    async fn suspend(&self, call: PendingCall) -> Result<(), StoreError> {
        (**self).suspend(call).await
    }

    async fn pending(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        (**self).pending(run_id, call_id).await
    }

    async fn claim(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        (**self).claim(run_id, call_id).await
    }

    async fn list(&self, filter: &PendingFilter) -> Result<Vec<PendingCall>, StoreError> {
        (**self).list(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        (**self).flush().await
    }
}

/// Which records to read. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Of this run.
    pub run_id: Option<Arc<str>>,
    /// Of this call.
    pub call_id: Option<CallId>,
    /// How many of the closed ones to leave out at the front, after the other conditions.
    pub skip: usize,
    /// How many at most.
    pub limit: Option<usize>,
}

impl RecordFilter {
    /// The records of one call.
    #[must_use]
    pub fn call(run_id: impl Into<Arc<str>>, call_id: CallId) -> Self {
        Self { run_id: Some(run_id.into()), call_id: Some(call_id), ..Self::default() }
    }

    /// The records of one run.
    #[must_use]
    pub fn run(run_id: impl Into<Arc<str>>) -> Self {
        Self { run_id: Some(run_id.into()), ..Self::default() }
    }

    /// Whether a record meets the conditions on run and call.
    #[must_use]
    pub fn matches(&self, record: &ToolInvocationRecord) -> bool {
        self.run_id.as_ref().is_none_or(|run_id| *run_id == record.run_id)
            && self.call_id.as_ref().is_none_or(|call_id| *call_id == record.tool_call_id)
    }
}
