//! Calls that wait, while the store cannot be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::json;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{
    AuditRecord, ChangeFn, Key, MemoryStore, Query, RecordFilter, SealedRecord, Store, StoreError,
    StoredDocument, WriteHandle,
};

use crate::serve::held::{NOBODY, builder, letter, one_waiting, piped, post, recorded, sent, waiting, waits};
use crate::serve::rig::text;

/// A store in which one run cannot be read for a while.
struct Unread {
    store: Arc<MemoryStore>,
    run: Arc<str>,
    is_down: Arc<AtomicBool>,
}

#[async_trait]
impl Store for Unread {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.store.append(record)
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        self.store.update(keys, change)
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.store.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        if self.is_down.load(Ordering::Acquire) && query.scope.as_ref() == Some(&self.run) {
            return Err(StoreError::Unavailable("one read fails".into()));
        }
        self.store.list(query).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.store.records(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now().await
    }

    async fn changed(&self) {
        self.store.changed().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_read_is_not_forgotten() {
    let store = Arc::<MemoryStore>::default();
    let first = builder(Arc::clone(&store), "").build().unwrap();
    waits(&letter(&piped(&first, NOBODY).await, "unread").await.unwrap());
    first.close(Duration::ZERO).await;
    let call = one_waiting(&*store).await;
    post(&store, &call, ApprovalDecision::Approve).await;
    let is_down = Arc::new(AtomicBool::new(true));
    let unread = Unread { store: Arc::clone(&store), run: Arc::clone(&call.run_id), is_down: Arc::clone(&is_down) };
    let second = builder(unread, "").build().unwrap();
    let client = piped(&second, NOBODY).await;
    letter(&client, "unread").await.expect_err("the store cannot be read");
    assert_eq!(one_waiting(&*store).await.call_id, call.call_id, "it is not made a second time");
    is_down.store(false, Ordering::Release);
    let done = letter(&client, "unread").await.unwrap();
    assert_eq!((text(&done), sent("unread"), waiting(&*store).await.len()), ("sent at 1", 1, 0));
    assert_eq!(recorded(&*store).await, [json!(["letters__send", "ok"])]);
}
