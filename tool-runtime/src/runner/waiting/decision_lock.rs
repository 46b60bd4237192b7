//! Serializes the decisions on one call within its run: the second one sees the effect of the first, and holds none of
//! the run's budget while it waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

use crate::call::CallId;

/// The calls of a run with a decision in progress.
#[derive(Default)]
pub(in crate::runner) struct DecisionLocks(Mutex<HashMap<CallId, Weak<Turns<()>>>>);

/// The right to decide on a call, until it is dropped.
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
