//! [`Wake`]: wakes the tasks of this process that wait for documents that are due.

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::store::interface::POLL;

/// Wakes the tasks that wait in [`Store::changed`](crate::store::Store::changed), for stores to use.
///
/// A store calls [`wake`](Self::wake) after each commit whose
/// [`TransactionWrites::wakes`](crate::store::TransactionWrites::wakes), and its `changed` awaits [`wait`](Self::wait).
///
/// ```
/// use tool_runtime::store::Wake;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let wake = Wake::new();
/// wake.wake();
/// wake.wait().await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Wake(Notify);

impl Wake {
    /// Creates one that no task waits for yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes every task that waits, or the next one that begins to wait.
    pub fn wake(&self) {
        self.0.notify_waiters();
        // A task that has just listed what is due, and does not wait yet, must not sleep through this.
        self.0.notify_one();
    }

    /// Resolves when woken, and after a second at the latest: documents also become due by time, and other processes
    /// write some.
    pub async fn wait(&self) {
        drop(timeout(POLL, self.0.notified()).await);
    }
}
