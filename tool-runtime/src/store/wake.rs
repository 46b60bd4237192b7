//! [`Wake`]: wakes the tasks of this process that wait for due documents.

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::store::interface::POLL;

/// Wakes the tasks that wait in [`Store::changed`](crate::store::Store::changed).
#[derive(Debug, Default)]
pub(super) struct Wake(Notify);

impl Wake {
    /// Wakes every waiting task, and lets the next task that begins to wait continue at once.
    pub(super) fn wake(&self) {
        self.0.notify_waiters();
        // Stores a permit for a task that has just listed the due documents and does not wait yet, so that it does not
        // miss this change.
        self.0.notify_one();
    }

    /// Waits until the next wake-up, for at most a second, because documents also become due as time passes, and other
    /// processes write documents.
    pub(super) async fn wait(&self) {
        drop(timeout(POLL, self.0.notified()).await);
    }
}
