//! Abandoned calls of dead server processes: a server over the same store closes them, so that each has its record.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::mcp::serve::{McpServer, Served};
use crate::store::{LedgerEntry, close_abandoned};

/// The interval at which the server searches for such calls.
const INTERVAL: Duration = Duration::from_secs(10);

/// Starts the task that closes such calls, if it is not running. It ends with the server.
pub(super) fn close_them(server: &McpServer) {
    if !server.0.looks_after.swap(true, Ordering::Relaxed) {
        tokio::spawn(look_after(Arc::downgrade(&server.0)));
    }
}

async fn look_after(server: Weak<Served>) {
    loop {
        let Some(served) = server.upgrade() else { return };
        let closing = served.calls.closing().clone();
        match close_abandoned(&**served.runner.store(), LedgerEntry::ends_with_process).await {
            Ok(0) => {}
            Ok(calls) => tracing::warn!(calls, "closed calls whose process ended before they did"),
            Err(error) => tracing::warn!(error = error.code(), "calls whose process ended could not be listed"),
        }
        drop(served);
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = closing.cancelled() => return,
        }
    }
}
