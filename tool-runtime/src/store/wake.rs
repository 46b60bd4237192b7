//! [`Wake`]: wakes those who wait for documents that are due, in this process.

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::store::store::POLL;

/// Wakes those who wait in [`Store::changed`](crate::store::Store::changed).
#[derive(Default)]
pub(super) struct Wake(Notify);

impl Wake {
    pub(super) fn wake(&self) {
        self.0.notify_waiters();
        // Who is about to wait has looked before this and does not sleep through it.
        self.0.notify_one();
    }

    /// Resolves after a while without being woken: time makes documents due, too, and so do other processes.
    pub(super) async fn wait(&self) {
        drop(timeout(POLL, self.0.notified()).await);
    }
}
