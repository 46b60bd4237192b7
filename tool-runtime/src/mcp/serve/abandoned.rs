//! Closes the abandoned calls of dead server processes. A running server that uses the same store reconciles, repeats
//! or closes each of these calls, so that each call, and each decision posted to it, has a record.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::mcp::serve::tasks::Left;
use crate::mcp::serve::{McpServer, Served};
use crate::runner::ServedRuns;

/// The interval at which the server searches for abandoned calls.
const INTERVAL: Duration = Duration::from_secs(10);

/// Starts the background task that closes abandoned calls, if it is not running. The task ends with the server.
pub(super) fn close_them(server: &McpServer) {
    if !server.0.looks_after.swap(true, Ordering::Relaxed) {
        tokio::spawn(look_after(Arc::downgrade(&server.0)));
    }
}

async fn look_after(server: Weak<Served>) {
    let mut left = Left::new();
    loop {
        let Some(served) = server.upgrade() else { return };
        let closing = served.calls.closing().clone();
        served.tasks.begin(&served.runner).await;
        // A tool may run again here, so a closing server waits, as for any other call.
        if let Ok(_room) = served.calls.tend() {
            tokio::select! {
                closed = ServedRuns(&served.runner).close_abandoned(&closing) => match closed {
                    Ok(0) => {}
                    Ok(calls) => tracing::warn!(calls, "closed calls that dead processes left open"),
                    Err(error) => tracing::warn!(error = error.code(), "calls of dead processes could not be listed"),
                },
                () = served.calls.stopped().cancelled() => {}
            }
            tokio::select! {
                tended = left.tend(&served) => if let Err(error) = tended {
                    tracing::warn!(error = error.code(), "leftovers of crashed servers could not be removed");
                },
                // A search can take long, so do not wait for it. The next server continues it.
                () = closing.cancelled() => {}
            }
        }
        drop(served);
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = closing.cancelled() => return,
        }
    }
}
