//! [`Contained`]: catches the panics of a part that the application wrote, in every method and in its destructor.
//!
//! The runner calls a store, clock, validator, repairer, broker or sink only through this type. A panic in one of them
//! becomes an ordinary error of that part, also during the cleanup after a dropped future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::call::{DigestKey, Event, EventSink, ToolInvocationRecord, Violation};
use crate::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};
use crate::contain::{attempted, awaited};
use crate::error::Problem;
use crate::hydrate::repair::Repair;
use crate::json::Tree;
use crate::runner::report::failure::Failures;
use crate::schema::validator::{Compiled, Validator};
use crate::store::{
    AuditRecord, ChangeFn, Clock, Document, DueRun, Finding, Key, POLL, PendingCall, Query, QueueDepth, RecordFilter,
    SealedRecord, Store, StoreError, StoredDocument, SystemClock, Waiting, WriteHandle, digest_key,
};
use crate::tool::Schema;

/// A part of the application. A panic in it is caught and reported to the operators' sink.
pub(in crate::runner) struct Contained<T: ?Sized> {
    /// `None` only while this value is dropped.
    part: Option<Arc<T>>,
    failures: Failures,
}

/// The last call of a run may be the last owner of the part, so its destructor can run inside that call's future.
impl<T: ?Sized> Drop for Contained<T> {
    fn drop(&mut self) {
        let part = self.part.take();
        if let Err(text) = attempted(|| drop(part)) {
            self.failures.panicked("destructor", &text);
        }
    }
}

impl<T: ?Sized> Contained<T> {
    pub(in crate::runner) const fn new(part: Arc<T>, failures: Failures) -> Self {
        Self { part: Some(part), failures }
    }

    fn call<R>(&self, name: &'static str, work: impl FnOnce(&T) -> R) -> Option<R> {
        let part = self.part.as_deref()?;
        attempted(|| work(part)).map_err(|text| self.failures.panicked(name, &text)).ok()
    }

    /// Awaits a future of the part. Catches panics while the future is created, polled and dropped.
    pub(in crate::runner) async fn wait<'a, R>(
        &'a self,
        name: &'static str,
        make: impl FnOnce(&'a T) -> Pin<Box<dyn Future<Output = R> + Send + 'a>>,
    ) -> Option<R> {
        let part = self.part.as_deref()?;
        awaited(|| make(part)).await.map_err(|text| self.failures.panicked(name, &text)).ok()
    }
}

impl Contained<dyn Store> {
    async fn wait_for<'a, R>(
        &'a self,
        make: impl FnOnce(&'a dyn Store) -> Pin<Box<dyn Future<Output = Result<R, StoreError>> + Send + 'a>>,
    ) -> Result<R, StoreError> {
        self.wait("store", make).await.unwrap_or(Err(StoreError::Panicked))
    }

    pub(in crate::runner) async fn waiting(&self, key: Key) -> Result<Option<Waiting>, StoreError> {
        Ok(match self.document(key).await? {
            Some(Document::Waiting(waiting)) => Some(*waiting),
            _ => None,
        })
    }

    /// Reads one document.
    pub(in crate::runner) async fn document(&self, key: Key) -> Result<Option<Document>, StoreError> {
        Ok(self.read(&[key]).await?.pop().flatten().map(|stored| stored.document))
    }

    /// Whether a run was purged or erased.
    pub(in crate::runner) async fn is_purged(&self, run_id: &str) -> Result<bool, StoreError> {
        Ok(matches!(self.document(Key::run_head(run_id)).await?, Some(Document::Purged { .. })))
    }

    /// Returns the store's key for digests of arguments; creates it if there is none.
    pub(in crate::runner) async fn digest_key(&self) -> Result<DigestKey, StoreError> {
        digest_key::find_or_create(self).await
    }
}

#[async_trait]
impl Store for Contained<dyn Store> {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.call("store", |store| store.append(record))
            .unwrap_or_else(|| WriteHandle::ready(Err(StoreError::Panicked)))
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        self.call("store", |store| store.update(keys, change))
            .unwrap_or_else(|| WriteHandle::ready(Err(StoreError::Panicked)))
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.wait_for(|store| store.read(keys)).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        self.wait_for(|store| store.list(query)).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.wait_for(|store| store.records(filter)).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.wait_for(Store::flush).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.wait_for(Store::now).await
    }

    async fn changed(&self) {
        if self.wait("store", Store::changed).await.is_none() {
            // Without a pause, a worker would call `changed` again at once.
            tokio::time::sleep(POLL).await;
        }
    }

    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        self.wait_for(|store| store.due_runs(now, lane, limit)).await
    }

    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        self.wait_for(|store| store.lanes(now, after, limit)).await
    }

    async fn depth(&self, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
        self.wait_for(|store| store.depth(now, tenant)).await
    }

    async fn calls(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        self.wait_for(|store| store.calls(filter)).await
    }

    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        self.wait_for(|store| store.open_records(filter)).await
    }

    async fn pending_calls(&self, filter: &RecordFilter) -> Result<Vec<Result<PendingCall, Finding>>, StoreError> {
        self.wait_for(|store| store.pending_calls(filter)).await
    }

    async fn pending(&self, key: &Key) -> Result<Option<PendingCall>, StoreError> {
        self.wait_for(|store| store.pending(key)).await
    }
}

impl Contained<dyn Clock> {
    pub(in crate::runner) fn now(&self) -> Timestamp {
        self.call("clock", Clock::now).unwrap_or_else(|| SystemClock.now())
    }
}

impl Contained<EventSink> {
    pub(in crate::runner) fn emit(&self, event: Event) {
        self.call("event sink", |sink| sink(event));
    }
}

impl Contained<dyn ConnectionBroker> {
    pub(in crate::runner) async fn resolve(
        &self,
        request: ConnectionRequest<'_>,
    ) -> Result<ConnectionHandle, ConnectionError> {
        let panicked = || Err(ConnectionError::Failed("the broker panicked".into()));
        self.wait("connection broker", |broker| broker.resolve(request)).await.unwrap_or_else(panicked)
    }
}

/// The application's validator. A panic while it compiles a schema or checks a value is caught.
pub(in crate::runner) struct ContainedValidator {
    part: Contained<dyn Validator>,
    /// Read once, because the record of every call contains it.
    name: String,
    version: String,
}

impl ContainedValidator {
    pub(in crate::runner) fn new(validator: Arc<dyn Validator>, failures: Failures) -> Self {
        let part = Contained::new(validator, failures);
        let name = part.call(VALIDATOR, |validator| validator.name().to_owned());
        let version = part.call(VALIDATOR, |validator| validator.version().to_owned());
        Self { part, name: name.unwrap_or_default(), version: version.unwrap_or_default() }
    }
}

const VALIDATOR: &str = "validator";

impl Validator for ContainedValidator {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn compile(&self, schema: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        let compiled = self.part.call(VALIDATOR, |validator| validator.compile(schema)).unwrap_or_else(|| {
            Err(Problem::schema("", "the validator panicked", "see the report to the failure sink"))
        })?;
        Ok(Arc::new(Contained::new(compiled, self.part.failures.clone())))
    }
}

impl Compiled for Contained<dyn Compiled> {
    fn check(&self, value: &Tree<'_>) -> Result<(), Vec<Violation>> {
        // An error without violations tells the caller that the value was not checked.
        self.call(VALIDATOR, |compiled| compiled.check(value)).unwrap_or_else(|| Err(Vec::new()))
    }
}

impl Contained<Repair> {
    pub(in crate::runner) fn repair(&self, text: &str) -> Option<String> {
        self.call("repairer", |repair| repair(text)).flatten()
    }
}
