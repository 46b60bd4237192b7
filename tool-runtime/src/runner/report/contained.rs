//! [`Contained`]: a part of the application whose panics are contained, at every method and in its destructor.
//!
//! A store, clock, validator, repairer, broker or sink is reached through this type only, so a panic in one of them is
//! an ordinary error of that part, also during the cleanup after a dropped future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{DigestKey, Event, EventSink, ToolInvocationRecord, Violation};
use crate::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};
use crate::contain::{attempted, awaited};
use crate::error::Problem;
use crate::hydrate::repair::Repair;
use crate::json::Tree;
use crate::runner::report::failure::Failures;
use crate::schema::validator::{Compiled, Validator};
use crate::store::pages::Search;
use crate::store::transaction::returning;
use crate::store::{
    AuditRecord, ChangeFn, Clock, Document, Finding, Key, PendingCall, Query, RecordFilter, SealedRecord, Store,
    StoreError, StoredDocument, SystemClock, Transaction, Waiting, WriteHandle, digest_key,
};
use crate::tool::Schema;

/// A part of the application.
pub(in crate::runner) struct Contained<T: ?Sized> {
    /// `None` only during its drop.
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

    /// Awaits a future of the part. Making it, polling it and dropping it can each panic.
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
    pub(in crate::runner) fn append(&self, record: impl Into<AuditRecord>) -> WriteHandle {
        let record = record.into();
        self.call("store", |store| store.append(record))
            .unwrap_or_else(|| WriteHandle::ready(Err(StoreError::Panicked)))
    }

    pub(in crate::runner) fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        self.call("store", |store| store.update(keys, change))
            .unwrap_or_else(|| WriteHandle::ready(Err(StoreError::Panicked)))
    }

    /// Runs a transaction, and returns the closure's value.
    pub(in crate::runner) async fn transact<T: Send + 'static>(
        &self,
        keys: Vec<Key>,
        change: impl FnMut(&mut Transaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (change, returned) = returning(change);
        self.update(keys, change).await?;
        returned()
    }

    pub(in crate::runner) async fn calls(
        &self,
        filter: &RecordFilter,
    ) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        self.wait("store", |store| store.calls(filter)).await.unwrap_or(Err(StoreError::Panicked))
    }

    pub(in crate::runner) async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.wait("store", |store| store.records(filter)).await.unwrap_or(Err(StoreError::Panicked))
    }

    pub(in crate::runner) async fn open_records(
        &self,
        filter: &RecordFilter,
    ) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        self.wait("store", |store| store.open_records(filter)).await.unwrap_or(Err(StoreError::Panicked))
    }

    pub(in crate::runner) async fn waiting(&self, key: Key) -> Result<Option<Waiting>, StoreError> {
        Ok(match self.document(key).await? {
            Some(Document::Waiting(waiting)) => Some(*waiting),
            _ => None,
        })
    }

    /// Reads one document.
    pub(in crate::runner) async fn document(&self, key: Key) -> Result<Option<Document>, StoreError> {
        let key = [key];
        let read = self.wait("store", |store| store.read(&key)).await.unwrap_or(Err(StoreError::Panicked));
        Ok(read?.pop().flatten().map(|stored| stored.document))
    }

    /// Returns the suspended calls of a run, and at the end those that cannot be read.
    pub(in crate::runner) async fn pending_calls(
        &self,
        run_id: Arc<str>,
    ) -> Result<Vec<Result<PendingCall, Finding>>, StoreError> {
        let of_run = RecordFilter::run(run_id);
        self.wait("store", |store| store.pending_calls(&of_run)).await.unwrap_or(Err(StoreError::Panicked))
    }

    /// Whether a run was purged or erased.
    pub(in crate::runner) async fn is_purged(&self, run_id: &str) -> Result<bool, StoreError> {
        Ok(matches!(self.document(Key::run(run_id)).await?, Some(Document::Purged { .. })))
    }

    /// Returns the store's key for digests of arguments; creates it if there is none.
    pub(in crate::runner) async fn digest_key(&self) -> Result<DigestKey, StoreError> {
        let key = [Key::digest_key()];
        let read = self.wait("store", |store| store.read(&key)).await.unwrap_or(Err(StoreError::Panicked));
        if let Some(key) = digest_key::read(read?.pop().flatten()) {
            return Ok(key);
        }
        let candidate = DigestKey::generate();
        let change = move |transaction: &mut Transaction| digest_key::get_or_insert(transaction, &candidate);
        self.transact(key.to_vec(), change).await
    }

    /// Returns the next page of a search. `None` at the end.
    pub(in crate::runner) async fn next(&self, search: &mut Search) -> Result<Option<Vec<StoredDocument>>, StoreError> {
        let listed = self.list(search.query()).await;
        search.listed(listed)
    }

    pub(in crate::runner) async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        self.wait("store", |store| store.list(query)).await.unwrap_or(Err(StoreError::Panicked))
    }
}

impl Contained<dyn Store> {
    pub(in crate::runner) async fn now(&self) -> Result<Timestamp, StoreError> {
        self.wait("store", Store::now).await.unwrap_or(Err(StoreError::Panicked))
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

/// The application's validator, and the schemas that it compiles.
pub(in crate::runner) struct ContainedValidator {
    part: Contained<dyn Validator>,
    /// Read once: records repeat them for every call.
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
        // A refusal without a violation: the value was not checked, and the caller reports that.
        self.call(VALIDATOR, |compiled| compiled.check(value)).unwrap_or_else(|| Err(Vec::new()))
    }
}

impl Contained<Repair> {
    pub(in crate::runner) fn repair(&self, text: &str) -> Option<String> {
        self.call("repairer", |repair| repair(text)).flatten()
    }
}
