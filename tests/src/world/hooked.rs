//! A wrapper around a store, with a hook before each method.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tool_runtime::store::{
    AuditRecord, ChangeFn, DueRun, Key, Query, QueueDepth, RecordFilter, SealedRecord, Store, StoreError,
    StoredDocument, WriteHandle,
};

/// The action that a hook selects for a call of a method.
pub enum HookAction {
    /// The wrapped store runs the method.
    Pass,
    /// The method returns this error, and nothing is written.
    Fail(StoreError),
    /// The write takes place, but its handle never resolves.
    Silence,
    /// The write takes place, and its handle resolves after a yield.
    Late,
    /// The write takes place, and its handle resolves after this time.
    Slow(Duration),
    /// The write takes place, but its handle resolves with this error.
    Lost(StoreError),
    /// The method runs after this future.
    After(Pin<Box<dyn Future<Output = ()> + Send>>),
}

type Hook = Box<dyn Fn(&'static str) -> HookAction + Send + Sync>;

type Refusal = Box<dyn Fn(&[Key]) -> Option<StoreError> + Send + Sync>;

type Hold = Box<dyn Fn(&Query) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync>;

/// A wrapper around a store. It calls its hook with the name of each method before the method.
pub struct HookedStore {
    store: Arc<dyn Store>,
    hook: Hook,
    refusal: Option<Refusal>,
    hold: Option<Hold>,
    /// The maximum number of documents in a page.
    most: usize,
    /// Senders of the handles that do not resolve until `settle`.
    silenced: Mutex<Vec<oneshot::Sender<Result<(), StoreError>>>>,
}

impl HookedStore {
    /// A store with a hook.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, hook: impl Fn(&'static str) -> HookAction + Send + Sync + 'static) -> Self {
        Self { store, hook: Box::new(hook), refusal: None, hold: None, most: usize::MAX, silenced: Mutex::default() }
    }

    /// Fails the updates of these documents with an error that is selected by their keys.
    #[must_use]
    pub fn refusing(mut self, refusal: impl Fn(&[Key]) -> Option<StoreError> + Send + Sync + 'static) -> Self {
        self.refusal = Some(Box::new(refusal));
        self
    }

    /// Keeps back the answer to a query until the future that is selected by the query.
    #[must_use]
    pub fn holding(
        mut self,
        hold: impl Fn(&Query) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync + 'static,
    ) -> Self {
        self.hold = Some(Box::new(hold));
        self
    }

    /// Lists this many documents at a time, whatever the limit of the query.
    #[must_use]
    pub fn short_pages(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Resolves every silenced handle with this error.
    pub fn settle(&self, error: impl Fn() -> StoreError) {
        for sender in self.silenced.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            drop(sender.send(Err(error())));
        }
    }

    fn write(
        &self,
        method: &'static str,
        write: impl FnOnce(&dyn Store) -> WriteHandle + Send + 'static,
    ) -> WriteHandle {
        match (self.hook)(method) {
            HookAction::Pass => write(&*self.store),
            HookAction::Fail(error) => WriteHandle::ready(Err(error)),
            HookAction::Lost(error) => {
                drop(write(&*self.store));
                WriteHandle::ready(Err(error))
            }
            HookAction::After(first) => {
                let store = Arc::clone(&self.store);
                after(first, async move { write(&*store).await })
            }
            HookAction::Late => after(tokio::task::yield_now(), write(&*self.store)),
            HookAction::Slow(time) => after(tokio::time::sleep(time), write(&*self.store)),
            HookAction::Silence => {
                drop(write(&*self.store));
                let (sender, receiver) = oneshot::channel();
                self.silenced.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
                WriteHandle::new(receiver)
            }
        }
    }

    async fn look(&self, method: &'static str) -> Result<&dyn Store, StoreError> {
        match (self.hook)(method) {
            HookAction::Fail(error) | HookAction::Lost(error) => return Err(error),
            HookAction::Pass | HookAction::Silence => {}
            HookAction::Late => tokio::task::yield_now().await,
            HookAction::Slow(time) => tokio::time::sleep(time).await,
            HookAction::After(first) => first.await,
        }
        Ok(&*self.store)
    }
}

/// A write that is acknowledged after `first`.
fn after(
    first: impl Future<Output = ()> + Send + 'static,
    write: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) -> WriteHandle {
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        first.await;
        drop(sender.send(write.await));
    });
    WriteHandle::new(receiver)
}

#[async_trait]
impl Store for HookedStore {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.write("append", |store| store.append(record))
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        if let Some(error) = self.refusal.as_ref().and_then(|refusal| refusal(&keys)) {
            return WriteHandle::ready(Err(error));
        }
        self.write("update", |store| store.update(keys, change))
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.look("read").await?.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        let query = Query { limit: query.limit.min(self.most), ..query.clone() };
        let listed = self.look("list").await?.list(&query).await;
        if let Some(held) = self.hold.as_ref().and_then(|hold| hold(&query)) {
            held.await;
        }
        listed
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.look("records").await?.records(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.look("flush").await?.flush().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.look("now").await?.now().await
    }

    async fn changed(&self) {
        self.store.changed().await;
    }

    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        let method = if lane.is_some() { "due_runs of a lane" } else { "due_runs" };
        self.look(method).await?.due_runs(now, lane, limit).await
    }

    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        self.look("lanes").await?.lanes(now, after, limit).await
    }

    async fn depth(&self, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
        self.look("depth").await?.depth(now, tenant).await
    }
}
