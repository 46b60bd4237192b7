//! [`MemoryStore`]: everything in this process, bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::store::audit::{AuditRecord, Sealed};
use crate::store::transaction::Writes;
use crate::store::wake::Wake;
use crate::store::{
    Chain, Change, Clock, Document, Key, Listed, Query, Receipt, RecordFilter, Store, StoreError, SystemClock,
    Transaction,
};

/// How much a store holds.
#[derive(Clone, Copy)]
struct Limits {
    records: usize,
    open: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { records: 4096, open: 4096 }
    }
}

/// A store in memory: bounded, shared by its clones, lost with the process.
///
/// Records are sealed when they are first read, not when they are appended: a hash costs more than a small tool. The
/// chain of a run continues as long as one of its records is kept.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Shared>);

struct Shared {
    limits: Limits,
    clock: Box<dyn Clock>,
    state: Mutex<State>,
    changed: Wake,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            clock: Box::new(SystemClock),
            state: Mutex::default(),
            changed: Wake::default(),
        }
    }
}

#[derive(Default)]
struct State {
    records: VecDeque<Kept>,
    /// How many at the front of `records` are sealed.
    sealed: usize,
    /// The chain of each run that has records, and how many.
    chains: HashMap<Arc<str>, (Chain, usize)>,
    dropped: u64,
    documents: BTreeMap<u64, (Key, Document)>,
    positions: HashMap<Key, u64>,
    /// Positions of documents that only answer questions about the past, oldest first.
    settled: VecDeque<u64>,
    /// Numbers documents, so that they can be listed in order.
    next: u64,
}

enum Kept {
    New(AuditRecord),
    Sealed(Sealed),
    /// Only while it is being sealed.
    Moved,
}

impl MemoryStore {
    /// A store with the default limits: 4,096 records, and 4,096 documents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A store with other limits; each counts at least 1.
    ///
    /// Of more records than `records`, the oldest make room for new ones, and so do the entries of as many calls that
    /// ended in the ledger. Calls that wait or run, and what else is still needed, are never dropped: one more than
    /// `open` is refused, unless accounts whose window is over and grants that expired can make room.
    #[must_use]
    pub fn with_limits(records: usize, open: usize) -> Self {
        let limits = Limits { records: records.max(1), open: open.max(1) };
        Self(Arc::new(Shared { limits, ..Shared::default() }))
    }

    /// A store with the default limits and a clock of its own, by which leases and the windows of accounts end: for tests and replays.
    #[must_use]
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        Self(Arc::new(Shared { clock: Box::new(clock), ..Shared::default() }))
    }

    /// How many records were dropped to make room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn append(&self, record: AuditRecord) -> Receipt {
        let displaced = self.state().append(record, self.0.limits.records);
        // What made room is freed outside the lock.
        drop(displaced);
        Receipt::ready(Ok(()))
    }

    fn update(&self, keys: Vec<Key>, mut change: Change) -> Receipt {
        // Asked before the lock is taken: it is the application's code.
        let now = self.0.clock.now();
        let mut state = self.state();
        let documents = keys.into_iter().map(|key| {
            let document = state.document(&key).cloned();
            (key, document)
        });
        let mut transaction = Transaction::new(now, documents.collect::<Vec<_>>());
        let changed = change(&mut transaction);
        let writes = transaction.into_writes();
        let wakes = writes.wakes(now);
        let displaced = changed.and_then(|()| state.write(writes, self.0.limits, now));
        drop(state);
        if wakes && displaced.is_ok() {
            self.0.changed.wake();
        }
        Receipt::ready(displaced.map(drop))
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Document>>, StoreError> {
        let state = self.state();
        Ok(keys.iter().map(|key| state.document(key).cloned()).collect())
    }

    async fn list(&self, query: &Query) -> Result<Vec<Listed>, StoreError> {
        let state = self.state();
        let behind = state.documents.range(query.after.saturating_add(1)..);
        let matching = behind.filter(|(_, (key, document))| {
            key.space() == query.space
                && query.scope.as_ref().is_none_or(|scope| scope == key.scope())
                && query.due.is_none_or(|due| document.due().is_some_and(|time| time <= due))
        });
        let listed = matching.take(query.limit).map(|(position, (key, document))| Listed {
            position: *position,
            key: key.clone(),
            document: document.clone(),
        });
        Ok(listed.collect())
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<Sealed>, StoreError> {
        let mut state = self.state();
        state.seal()?;
        let dropped = state.dropped;
        let sealed = state.records.iter().zip(dropped + 1..).filter_map(|(kept, position)| match kept {
            Kept::Sealed(sealed) => Some((sealed, position)),
            Kept::New(_) | Kept::Moved => None,
        });
        let matching = sealed.filter(|(sealed, position)| *position > filter.after && filter.matches(&sealed.record));
        let page = matching.take(filter.limit.unwrap_or(usize::MAX));
        Ok(page.map(|(sealed, position)| Sealed { position, ..sealed.clone() }).collect())
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn changed(&self) {
        self.0.changed.wait().await;
    }
}

impl State {
    fn document(&self, key: &Key) -> Option<&Document> {
        let position = self.positions.get(key)?;
        self.documents.get(position).map(|(_, document)| document)
    }

    /// Returns what made room.
    fn write(&mut self, writes: Writes, limits: Limits, now: Timestamp) -> Result<Vec<Kept>, StoreError> {
        let is_open = |document: Option<&Document>| document.is_some_and(|document| !document.is_settled());
        let added = writes.documents.iter().filter(|(_, document)| is_open(document.as_ref())).count();
        let is_full = |state: &Self| {
            let before = state.documents.len() - state.settled.len();
            let left = writes.documents.iter().filter(|(key, _)| is_open(state.document(key))).count();
            added > left && before - left + added > limits.open
        };
        if is_full(self) {
            self.forget(now);
            if is_full(self) {
                return Err(StoreError::Full);
            }
        }
        for (key, document) in writes.documents {
            self.set(key, document, limits.records);
        }
        Ok(writes.records.into_iter().filter_map(|record| self.append(record, limits.records)).collect())
    }

    /// Drops what means nothing any more.
    fn forget(&mut self, now: Timestamp) {
        self.documents.retain(|_, (key, document)| {
            let over = document.over().is_some_and(|over| over <= now);
            if over {
                self.positions.remove(key);
            }
            !over
        });
    }

    fn set(&mut self, key: Key, document: Option<Document>, settled: usize) {
        let Some(document) = document else {
            let position = self.positions.remove(&key);
            if let Some(position) = position
                && self.documents.remove(&position).is_some_and(|(_, document)| document.is_settled())
            {
                self.settled.retain(|kept| *kept != position);
            }
            return;
        };
        let position = *self.positions.entry(key.clone()).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let is_settled = document.is_settled();
        let before = self.documents.insert(position, (key, document));
        if is_settled && !before.is_some_and(|(_, document)| document.is_settled()) {
            self.settled.push_back(position);
        }
        while self.settled.len() > settled
            && let Some(oldest) = self.settled.pop_front()
        {
            if let Some((key, _)) = self.documents.remove(&oldest) {
                self.positions.remove(&key);
            }
        }
    }

    /// Returns the record that made room.
    fn append(&mut self, record: AuditRecord, limit: usize) -> Option<Kept> {
        let displaced = if self.records.len() >= limit { self.records.pop_front() } else { None };
        if displaced.is_some() {
            self.dropped += 1;
        }
        match &displaced {
            Some(Kept::Sealed(sealed)) => {
                self.sealed -= 1;
                let run_id = sealed.record.run_id();
                if let Some((_, kept)) = self.chains.get_mut(run_id) {
                    *kept -= 1;
                    if *kept == 0 {
                        self.chains.remove(run_id);
                    }
                }
            }
            Some(Kept::New(_) | Kept::Moved) | None => {}
        }
        self.records.push_back(Kept::New(record));
        displaced
    }

    fn seal(&mut self) -> Result<(), StoreError> {
        while let Some(slot) = self.records.get_mut(self.sealed) {
            let Kept::New(record) = std::mem::replace(slot, Kept::Moved) else { return Err(StoreError::Lost) };
            // Records are dropped oldest first: a run without a chain may have lost all it had.
            let dropped = self.dropped;
            let start = || (Chain::after_gap(dropped), 0);
            let (chain, kept) = self.chains.entry(Arc::clone(record.run_id())).or_insert_with(start);
            *slot = Kept::Sealed(chain.seal(record)?);
            *kept += 1;
            self.sealed += 1;
        }
        Ok(())
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
