//! [`MemoryStore`]: everything in this process, bounded.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::call::{CallId, ToolInvocationRecord};
use crate::store::Chain;
use crate::store::pending::{PendingCall, PendingFilter};
use crate::store::{Receipt, RecordFilter, Store, StoreError};

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
/// Records are sealed when they are first read, not when they are put: a hash costs more than a small tool. Where
/// records were dropped unread, the chain continues after a link that represents the gap.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: VecDeque<ToolInvocationRecord>,
    /// How many at the front of `closed` are sealed.
    sealed: usize,
    /// Ends with the last sealed record.
    chain: Chain,
    /// Records dropped since then, unsealed.
    gap: u64,
    dropped: u64,
    open: HashMap<Key, (u64, ToolInvocationRecord)>,
    pending: HashMap<Key, (u64, PendingCall)>,
    /// Numbers what is kept in maps, so that it can be listed in order.
    next: u64,
}

type Key = (Arc<str>, CallId);

impl MemoryStore {
    /// A store with the default limits: 4,096 records, and 4,096 open ones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A store with other limits; each counts at least 1.
    ///
    /// Of more closed records than `records`, the oldest make room for new ones. Open records, and as many calls that
    /// wait, are never dropped: one more than `open` is refused.
    #[must_use]
    pub fn with_limits(records: usize, open: usize) -> Self {
        let limits = Limits { records: records.max(1), open: open.max(1) };
        Self(Arc::new(Shared { limits, state: Mutex::default() }))
    }

    /// How many closed records were dropped to make room.
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
    fn put(&self, record: ToolInvocationRecord) -> Receipt {
        let limits = self.0.limits;
        let mut state = self.state();
        let (displaced, result) = if record.ended_at.is_none() {
            (None, state.put_open(record, limits.open))
        } else {
            (state.put_closed(record, limits.records), Ok(()))
        };
        drop(state);
        // What made room is freed outside the lock.
        drop(displaced);
        Receipt::ready(result)
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        let mut state = self.state();
        state.seal()?;
        let matching = state.closed.iter().filter(|record| filter.matches(record));
        Ok(matching.skip(filter.skip).take(filter.limit.unwrap_or(usize::MAX)).cloned().collect())
    }

    async fn open_records(&self, filter: &RecordFilter) -> Result<Vec<ToolInvocationRecord>, StoreError> {
        let records = in_order(&self.state().open, |record| filter.matches(record));
        Ok(records.into_iter().take(filter.limit.unwrap_or(usize::MAX)).collect())
    }

    async fn suspend(&self, call: PendingCall) -> Result<(), StoreError> {
        let key = (Arc::clone(&call.run_id), call.call_id.clone());
        let mut state = self.state();
        if state.pending.contains_key(&key) {
            return Err(StoreError::Duplicate);
        }
        if state.pending.len() >= self.0.limits.open {
            return Err(StoreError::Full);
        }
        let number = state.number();
        state.pending.insert(key, (number, call));
        Ok(())
    }

    async fn pending(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        Ok(self.state().pending.get(&key(run_id, call_id)).map(|(_, call)| call.clone()))
    }

    async fn claim(&self, run_id: &str, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        Ok(self.state().pending.remove(&key(run_id, call_id)).map(|(_, call)| call))
    }

    async fn list(&self, filter: &PendingFilter) -> Result<Vec<PendingCall>, StoreError> {
        Ok(in_order(&self.state().pending, |call| filter.matches(call)))
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl State {
    fn put_open(&mut self, record: ToolInvocationRecord, limit: usize) -> Result<(), StoreError> {
        let key = (Arc::clone(&record.run_id), record.tool_call_id.clone());
        if let Some((_, open)) = self.open.get_mut(&key) {
            *open = record;
        } else if self.open.len() >= limit {
            return Err(StoreError::Full);
        } else {
            let number = self.number();
            self.open.insert(key, (number, record));
        }
        Ok(())
    }

    /// Returns the record that made room.
    fn put_closed(&mut self, mut record: ToolInvocationRecord, limit: usize) -> Option<ToolInvocationRecord> {
        if !self.open.is_empty() {
            self.open.remove(&(Arc::clone(&record.run_id), record.tool_call_id.clone()));
        }
        (record.previous, record.hash) = (None, None);
        let displaced = if self.closed.len() >= limit { self.closed.pop_front() } else { None };
        if displaced.is_some() {
            self.dropped += 1;
            match self.sealed.checked_sub(1) {
                Some(sealed) => self.sealed = sealed,
                None => self.gap += 1,
            }
        }
        self.closed.push_back(record);
        displaced
    }

    fn seal(&mut self) -> Result<(), StoreError> {
        // A copy, so that a record that cannot be sealed leaves the state as it was.
        let mut chain = self.chain;
        if self.gap > 0 {
            chain.skip(self.gap);
        }
        for record in self.closed.iter_mut().skip(self.sealed) {
            chain.seal(record)?;
        }
        (self.chain, self.gap, self.sealed) = (chain, 0, self.closed.len());
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn key(run_id: &str, call_id: &CallId) -> Key {
    (run_id.into(), call_id.clone())
}

fn in_order<T: Clone>(map: &HashMap<Key, (u64, T)>, matches: impl Fn(&T) -> bool) -> Vec<T> {
    let mut found: Vec<_> = map.values().filter(|(_, item)| matches(item)).collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, item)| item.clone()).collect()
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("MemoryStore")
            .field("closed", &state.closed.len())
            .field("open", &state.open.len())
            .field("pending", &state.pending.len())
            .finish_non_exhaustive()
    }
}
