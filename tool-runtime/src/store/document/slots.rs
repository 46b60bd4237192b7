//! [`StoredSlots`]: the leases of workers on the runs of one tenant.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The leases of workers on the runs of a tenant. Their number can be limited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredSlots {
    pub(crate) slots: Vec<Slot>,
}

/// A run under the lease of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slot {
    pub(crate) run_id: Arc<str>,
    /// When the lease on the run ends.
    pub(crate) until: Timestamp,
}

impl StoredSlots {
    /// Returns how many leases are running.
    pub(crate) fn running(&self, now: Timestamp) -> usize {
        self.slots.iter().filter(|slot| now < slot.until).count()
    }

    /// Adds a run, or sets the new end of its lease. Removes the runs whose lease has ended.
    pub(crate) fn enter(&mut self, run_id: &Arc<str>, until: Timestamp, now: Timestamp) {
        self.leave(run_id, now);
        self.slots.push(Slot { run_id: Arc::clone(run_id), until });
    }

    /// Removes a run, and the runs whose lease has ended. If these stayed, the document would be due in the past, and
    /// each write of it would wake all workers.
    pub(crate) fn leave(&mut self, run_id: &str, now: Timestamp) {
        self.slots.retain(|slot| *slot.run_id != *run_id && now < slot.until);
    }

    /// Returns when the last lease ends. `None` if there are no runs.
    pub(super) fn over(&self) -> Option<Timestamp> {
        self.slots.iter().map(|slot| slot.until).max()
    }
}
