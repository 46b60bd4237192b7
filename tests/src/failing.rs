//! A store that fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tool_runtime::call::{CallId, ToolInvocationRecord};
use tool_runtime::store::{PendingCall, PendingFilter, Receipt, RecordFilter, Store, StoreError};

/// A store in front of another one. While it fails, nothing can be read and nothing that waits can be claimed or kept.
pub struct FailingStore {
    store: Arc<dyn Store>,
    failing: AtomicBool,
}

impl FailingStore {
    /// A store that works until it is told to fail.
    #[must_use]
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self { store, failing: AtomicBool::new(false) }
    }

    /// Sets whether it fails.
    pub fn fail(&self, failing: bool) {
        self.failing.store(failing, Ordering::Release);
    }

    fn up(&self) -> Result<&dyn Store, StoreError> {
        if self.failing.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable("the disk is gone".into()));
        }
        Ok(&*self.store)
    }
}

#[async_trait]
impl Store for FailingStore {
    fn put(&self, record: ToolInvocationRecord) -> Receipt {
        self.store.put(record)
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        self.up()?.records(filter).await
    }

    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        self.up()?.open_records(filter).await
    }

    async fn suspend(&self, call: PendingCall) -> Result<(), StoreError> {
        self.up()?.suspend(call).await
    }

    async fn pending(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        self.up()?.pending(run_id, call_id).await
    }

    async fn claim(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        self.up()?.claim(run_id, call_id).await
    }

    async fn list(&self, filter: &PendingFilter) -> Result<Vec<PendingCall>, StoreError> {
        self.up()?.list(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.up()?.flush().await
    }
}
