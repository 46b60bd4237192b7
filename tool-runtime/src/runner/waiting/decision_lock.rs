//! Serializes the decisions on one call within its run. A second decision sees the effect of the first, and takes no
//! share of the run's budget while it waits for the lock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

use crate::call::CallId;

/// The locks of the calls of a run, while a decision on them is in progress.
#[derive(Default)]
pub(in crate::runner) struct DecisionLocks(Mutex<HashMap<CallId, Weak<Turns<()>>>>);

/// The exclusive right to decide on a call. When it is dropped, the next decision gets the right.
pub(in crate::runner) struct DecisionLock {
    _turn: OwnedMutexGuard<()>,
}

impl DecisionLocks {
    /// Waits until no other task decides on a call of this run.
    pub(in crate::runner) async fn lock(&self, call_id: &CallId) -> DecisionLock {
        let turns = self.of(call_id);
        DecisionLock { _turn: turns.lock_owned().await }
    }

    fn of(&self, call_id: &CallId) -> Arc<Turns<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = all.get(call_id).and_then(Weak::upgrade) {
            return turns;
        }
        all.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::default();
        all.insert(call_id.clone(), Arc::downgrade(&turns));
        turns
    }
}
