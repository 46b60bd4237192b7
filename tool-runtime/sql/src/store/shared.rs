//! [`Shared`]: the parts of a store that its clones and workers share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::store::connection::Database;
use crate::store::notices::Notices;
use crate::store::queue::Queue;

/// The channel on which PostgreSQL notifies of documents that are due.
pub(super) const CHANNEL: &str = "tool_runtime_changed";

pub(super) struct Shared {
    pub(super) database: Database,
    /// The runtime of the workers. It is kept because destructors also start writes, and they may run outside a
    /// runtime.
    pub(super) handle: Handle,
    pub(super) queue: Arc<Queue>,
    pub(super) clock: Latest,
    /// Wakes the tasks that wait for due documents.
    pub(super) changed: Notify,
    pub(super) notices: Notices,
    /// Listens for changes by other processes.
    #[cfg(feature = "postgres")]
    pub(super) listener: Mutex<Option<tokio::task::JoinHandle<()>>>,
    pub(super) patience: Duration,
    #[cfg(all(test, feature = "sqlite"))]
    pub(super) faults: crate::store::tests::Faults,
}

impl Shared {
    /// Wakes every task that waits for due documents.
    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
        // This stores a permit for a task that has listed the due documents but does not wait yet, so that it does not
        // miss the change.
        self.changed.notify_one();
    }
}

/// The latest time so far. With it, a clock that jumps back does not prolong a lease.
#[derive(Default)]
pub(super) struct Latest(Mutex<Timestamp>);

impl Latest {
    pub(super) fn at_least(&self, now: Timestamp) -> Timestamp {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = now.max(*latest);
        *latest
    }
}
