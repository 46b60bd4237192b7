//! [`Store`]: what must outlive a process.

use std::sync::Arc;

use async_trait::async_trait;

use crate::call::{CallId, ToolInvocationRecord};
use crate::store::StoreError;
use crate::store::pending::{PendingCall, PendingFilter};
use crate::store::receipt::Receipt;

/// Keeps records, pending calls and idempotency keys.
///
/// A call is known by its run and its id: ids that providers make are unique within a run only.
#[async_trait]
pub trait Store: Send + Sync {
    /// Takes a record. Returns at once and never fails for the caller, so that it can be called while a future is
    /// dropped; the receipt tells when the record is kept, or that it could not be.
    ///
    /// A record without an end is open: it is kept beside the chain, and replaced by the next record of its call.
    /// A record with an end is closed: it goes to the end of the chain.
    fn put(&self, record: ToolInvocationRecord) -> Receipt;

    /// Closed records in the order of the chain, sealed.
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError>;

    /// Open records, oldest first.
    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError>;

    /// Keeps a call that waits. [`StoreError::Duplicate`] when one with the same run and id waits already.
    async fn suspend(&self, call: PendingCall) -> Result<(), StoreError>;

    /// A call that waits.
    async fn pending(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError>;

    /// Takes a call that waits out of the store. Of any number of callers, in any number of processes, one gets it.
    async fn claim(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError>;

    /// Calls that wait, oldest first.
    async fn list(&self, filter: &PendingFilter) -> Result<Vec<PendingCall>, StoreError>;

    /// Resolves once everything that was put before is kept. Call it before the process ends.
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
