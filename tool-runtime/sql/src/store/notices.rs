//! [`Notices`]: PostgreSQL notifications (`NOTIFY`), which tell other processes about due documents. They have nothing
//! to do with the notices for webhooks.
//!
//! A transaction with a `NOTIFY` holds a lock of the whole server until its commit is on the disk, so such commits of
//! all databases run one after the other. Notifications are therefore sent after the commit, in separate transactions
//! that do not wait for the disk, and a burst of them is merged. If a notification is lost, a waiting task reads the
//! documents again after a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::store::connection::Connection;
use crate::store::shared::{CHANNEL, Shared};

/// The time after a notification during which further ones are merged.
const WINDOW: Duration = Duration::from_millis(10);

/// The notifications that this process sends.
#[derive(Default)]
pub(super) struct Notices {
    /// Whether a notification was sent less than [`WINDOW`] ago.
    is_open: AtomicBool,
    /// Whether a document has changed since that notification.
    is_due: AtomicBool,
}

impl Notices {
    /// Notifies other processes. The first notification is sent before this function returns, so that a process may end
    /// after its write. Later ones within [`WINDOW`] are sent as one.
    pub(super) async fn announce(shared: &Arc<Shared>, connection: &mut Connection) {
        let notices = &shared.notices;
        notices.is_due.store(true, Ordering::SeqCst);
        if notices.is_open.swap(true, Ordering::SeqCst) {
            return;
        }
        notices.is_due.store(false, Ordering::SeqCst);
        send(connection).await;
        shared.handle.spawn(merged(Arc::clone(shared)));
    }
}

/// Sends one notification for each window in which documents changed. Returns after a window without a change.
async fn merged(shared: Arc<Shared>) {
    let notices = &shared.notices;
    loop {
        sleep(WINDOW).await;
        if !notices.is_due.swap(false, Ordering::SeqCst) {
            notices.is_open.store(false, Ordering::SeqCst);
            // A write between the two lines above may have seen an open window and left its notification to this task.
            if !notices.is_due.load(Ordering::SeqCst) || notices.is_open.swap(true, Ordering::SeqCst) {
                return;
            }
            notices.is_due.store(false, Ordering::SeqCst);
        }
        if let Ok(mut connection) = shared.database.connection().await {
            send(&mut connection).await;
        }
    }
}

/// Sends a notification. Errors are ignored: a lost notification delays other processes by a second, and a broken
/// connection fails at its next use.
async fn send(connection: &mut Connection) {
    let sql = format!("SELECT set_config('synchronous_commit', 'off', true), pg_notify('{CHANNEL}', '')");
    drop(connection.run(sql).await);
}
