//! [`Notices`]: PostgreSQL notifies other processes of due documents.
//!
//! A transaction that notifies takes a lock of the whole server until its commit is on the disk, so that such commits
//! run one after the other, over all databases. Notices are sent after the commit, in separate transactions that do not
//! wait for the disk, and a burst is merged. A lost notice costs a second, after which a waiting task looks again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::store::connection::Connection;
use crate::store::shared::{CHANNEL, Shared};

/// How long notices are merged after one was sent.
const WINDOW: Duration = Duration::from_millis(10);

/// The notices that this process sends.
#[derive(Default)]
pub(super) struct Notices {
    /// A notice was sent less than [`WINDOW`] ago.
    is_open: AtomicBool,
    /// A document has changed since then.
    is_due: AtomicBool,
}

impl Notices {
    /// Notifies other processes. The first notice is sent before this returns, so that a process may end after its
    /// write; those within the window after it are sent as one.
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

/// Sends a notice for the changes since the last one, until there are none.
async fn merged(shared: Arc<Shared>) {
    let notices = &shared.notices;
    loop {
        sleep(WINDOW).await;
        if !notices.is_due.swap(false, Ordering::SeqCst) {
            notices.is_open.store(false, Ordering::SeqCst);
            // A write may have come between these two lines. It saw an open window and left its notice to this task.
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

/// Sends a notice. A failure costs a second, and a broken connection shows at its next use.
async fn send(connection: &mut Connection) {
    let sql = format!("SELECT set_config('synchronous_commit', 'off', true), pg_notify('{CHANNEL}', '')");
    drop(connection.run(sql).await);
}
