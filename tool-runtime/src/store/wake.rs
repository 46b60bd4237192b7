//! [`Wake`]: wakes the tasks of this process that wait for due documents.

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::store::interface::POLL;

/// Wakes the tasks that wait in [`Store::changed`](crate::store::Store::changed). Implementations of stores use it.
///
/// A store calls [`wake`](Self::wake) after each commit for which
/// [`TransactionWrites::wakes`](crate::store::TransactionWrites::wakes) is `true`, and its `changed` awaits
/// [`wait`](Self::wait).
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
    /// Creates a `Wake` without waiting tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes every task that waits, or the next one that begins to wait.
    pub fn wake(&self) {
        self.0.notify_waiters();
        // Stores a permit for a task that has just listed the due documents and does not wait yet: it must not miss
        // this.
        self.0.notify_one();
    }

    /// Resolves when woken, and after a second at the latest: documents also become due as time passes, and other
    /// processes write some.
    pub async fn wait(&self) {
        drop(timeout(POLL, self.0.notified()).await);
    }
}
