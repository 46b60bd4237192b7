//! [`MemoryStore`]: a bounded store in the memory of this process.

mod queue;
mod seals;
mod state;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::store::memory::seals::Seals;
use crate::store::memory::state::{Limits, MemoryContents};
use crate::store::wake::Wake;
use crate::store::{AuditRecord, SealedRecord};
use crate::store::{
    ChangeFn, Clock, DueRun, Key, Query, QueueDepth, RecordFilter, Store, StoreError, StoredDocument, SystemClock,
    Transaction, WriteHandle,
};

/// A bounded store in memory. Clones share its contents, which are lost when the process ends.
///
/// Records are sealed when they are first read, not when they are appended, because computing a hash takes longer than
/// running a small tool. The chain of a run continues while the store has at least one of its records.
///
/// ```
/// use tool_runtime::store::{MemoryStore, RecordFilter, Store};
/// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).store(store.clone()).build()?;
/// runner.run(RunOptions::new().run_id("run-1")).exec(ToolCall::text("call_1", "games__roll", "{}")).await;
/// let records = store.calls(&RecordFilter::run("run-1")).await?;
/// assert_eq!(records[0].outcome.code(), "unavailable");
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Shared>);

struct Shared {
    limits: Limits,
    clock: Box<dyn Clock>,
    seals: Mutex<Seals>,
    state: Mutex<MemoryContents>,
    changed: Wake,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            clock: Box::new(SystemClock),
            seals: Mutex::default(),
            state: Mutex::default(),
            changed: Wake::default(),
        }
    }
}

impl MemoryStore {
    /// Creates a store with the default limits: 4,096 records, and 4,096 documents in use.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store with other limits. Each limit is at least 1.
    ///
    /// Above `records`, the oldest records make room for new ones. The oldest entries of ended calls, the oldest
    /// anchors and the oldest notices make room in the same way. Open and suspended calls, and other documents in use,
    /// are never dropped. A document beyond `open` is refused, unless accounts whose window is over and expired grants
    /// without a legal hold can make room. A legal hold does not keep the oldest records, calls and notices of a full
    /// store.
    ///
    /// The mark that a call was decided stays until the call would have expired. An effect key with its result stays
    /// until `once_for` has passed, or forever without `once_for`. The store has up to 16 times `open` such documents,
    /// including the marks of purged and erased runs and the documents that count the leases of a tenant. Beyond that,
    /// decisions, purges and calls with a new effect key are refused.
    #[must_use]
    pub fn with_limits(records: usize, open: usize) -> Self {
        let limits = Limits { records: records.max(1), open: open.max(1) };
        Self(Arc::new(Shared { limits, ..Shared::default() }))
    }

    /// Creates a store with the default limits and the given clock, for tests and replays. The clock decides when
    /// leases and the windows of accounts end, and when waiting calls expire.
    #[must_use]
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        Self(Arc::new(Shared { clock: Box::new(clock), ..Shared::default() }))
    }

    #[cfg(test)]
    pub(super) fn with_clock_and_limits(clock: impl Clock + 'static, records: usize, open: usize) -> Self {
        let limits = Limits { records, open };
        Self(Arc::new(Shared { clock: Box::new(clock), limits, ..Shared::default() }))
    }

    /// Returns how many records were dropped to make room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    fn state(&self) -> MutexGuard<'_, MemoryContents> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        let mut state = self.state();
        if state.refuses(&record) {
            return WriteHandle::ready(Err(StoreError::RunPurged));
        }
        let displaced = state.append(record, self.0.limits.records);
        drop(state);
        // Dropped records are freed outside the lock.
        drop(displaced);
        WriteHandle::ready(Ok(()))
    }

    fn update(&self, keys: Vec<Key>, mut change: ChangeFn) -> WriteHandle {
        // The clock is application code, so it is called before the lock is taken.
        let now = self.0.clock.now();
        let run = |state: &MemoryContents, change: &mut ChangeFn| {
            let documents = keys.iter().map(|key| (key.clone(), state.document(key).cloned()));
            Transaction::new(now, documents.collect::<Vec<_>>()).run(change)
        };
        let mut state = self.state();
        let (mut transaction, mut seals) = (run(&state, &mut change), None);
        if transaction.as_ref().is_ok_and(Transaction::changes_records) {
            // Only sealed records can be changed. The lock of the seals has to be taken first, so the change runs
            // again.
            drop(state);
            let mut locked = self.0.seals.lock().unwrap_or_else(PoisonError::into_inner);
            let mut sealed = locked.seal(|| self.state());
            state = self.state();
            sealed = sealed.and_then(|()| locked.seal_rest(&mut state));
            transaction = sealed.and_then(|()| run(&state, &mut change));
            seals = Some(locked);
        }
        let written = transaction.and_then(|transaction| {
            let wakes = transaction.wakes();
            let (documents, closed, erased, records) = transaction.into_writes();
            if let Some(seals) = &seals {
                seals.check(&state, &closed, &erased)?;
            }
            let displaced = state.write(documents, records, self.0.limits, now)?;
            if let Some(seals) = &mut seals {
                seals.forget_gone(&mut state);
                for (run_id, end) in closed {
                    state.remove_calls(&run_id);
                    end.into_iter().for_each(|end| seals.purge(&mut state, Arc::clone(&run_id), end));
                }
                erased.into_iter().for_each(|new| seals.erase(&mut state, new));
            }
            Ok((wakes, displaced))
        });
        drop(state);
        drop(seals);
        if let Ok((true, _)) = written {
            self.0.changed.wake();
        }
        // Dropped documents are freed outside the lock.
        WriteHandle::ready(written.map(drop))
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        let state = self.state();
        Ok(keys.iter().map(|key| state.document(key).cloned()).collect())
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        let state = self.state();
        let behind = state.documents.range(query.after.saturating_add(1)..);
        let matching = behind.filter(|(_, document)| {
            document.key.kind() == query.kind
                && query.scope.as_ref().is_none_or(|scope| scope == document.key.scope())
                && query.due.is_none_or(|due| document.due().is_some_and(|time| time <= due))
        });
        let listed = matching.take(query.limit).map(|(position, document)| document.clone().at(*position));
        Ok(listed.collect())
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        let found = {
            // One reader seals at a time. Writers wait only while records are taken and put back.
            let mut seals = self.0.seals.lock().unwrap_or_else(PoisonError::into_inner);
            seals.seal(|| self.state())?;
            seals.matching(&self.state(), filter)
        };
        // Clone the records outside the locks.
        Ok(found.into_iter().map(|(position, sealed)| SealedRecord { position, ..(*sealed).clone() }).collect())
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.0.clock.now())
    }

    async fn changed(&self) {
        self.0.changed.wait().await;
    }

    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        let state = self.state();
        Ok(match lane {
            None => state.due_runs(state.runs.due(now), limit),
            Some(lane) => state.due_runs(state.runs.due_in(lane, now), limit),
        })
    }

    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        let state = self.state();
        Ok(state.due_runs(state.runs.lanes(now, after), limit))
    }

    async fn depth(&self, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
        let state = self.state();
        Ok(QueueDepth::of(now, state.runs.all(tenant).filter_map(|position| state.documents.get(&position))))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("MemoryStore")
            .field("records", &state.records.len())
            .field("documents", &state.documents.len())
            .finish_non_exhaustive()
    }
}
