//! Serializes the decisions on one call within its run: a second decision sees the effect of the first, and reserves
//! nothing of the run's budget while it waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

use crate::call::CallId;

/// The calls of a run on which a decision is in progress, each with its lock.
#[derive(Default)]
pub(in crate::runner) struct DecisionLocks(Mutex<HashMap<CallId, Weak<Turns<()>>>>);

/// The exclusive right to decide on a call. Dropping it gives the right to the next decision.
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
