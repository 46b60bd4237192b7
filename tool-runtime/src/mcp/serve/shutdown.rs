//! [`Calls`]: how many run at a time, and how they end when the server is closed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::mcp::serve::McpServer;

/// How long cancelled calls may take to write their records.
const RECORDS: Duration = Duration::from_secs(5);

/// The calls of a server, of all its clients together.
pub(super) struct Calls {
    room: Arc<Semaphore>,
    /// For subscriptions, of which there may be as many.
    listeners: Arc<Semaphore>,
    max: u32,
    closing: CancellationToken,
    stopped: CancellationToken,
    closed: CancellationToken,
}

/// Why a call may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Busy,
    Closing,
}

impl Calls {
    pub(super) fn new(max: usize) -> Self {
        let max = u32::try_from(max.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self {
            room: Arc::new(Semaphore::new(max as usize)),
            listeners: Arc::new(Semaphore::new(max as usize)),
            max,
            closing: CancellationToken::new(),
            stopped: CancellationToken::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Lets a call begin. It counts until what is returned is dropped.
    pub(super) fn begin(&self) -> Result<OwnedSemaphorePermit, Full> {
        if self.closing.is_cancelled() {
            return Err(Full::Closing);
        }
        Arc::clone(&self.room).try_acquire_owned().map_err(|_| Full::Busy)
    }

    /// Lets a subscription begin. It counts until what is returned is dropped.
    pub(super) fn listen(&self) -> Result<OwnedSemaphorePermit, Full> {
        Arc::clone(&self.listeners).try_acquire_owned().map_err(|_| Full::Busy)
    }

    /// Fires when no new client is served.
    pub(super) const fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Fires when running calls have to end.
    pub(super) const fn stopped(&self) -> &CancellationToken {
        &self.stopped
    }

    /// Fires when connections have to end.
    pub(super) const fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Waits until no call runs.
    async fn idle(&self) {
        let _ = self.room.acquire_many(self.max).await;
    }
}

impl McpServer {
    /// Closes the server: no new connections and calls; calls that run have until `grace` is over, are cancelled then,
    /// and write their records; connections end last. Returns when that is done.
    pub async fn close(&self, grace: Duration) {
        let calls = &self.0.calls;
        calls.closing.cancel();
        if tokio::time::timeout(grace, calls.idle()).await.is_err() {
            calls.stopped.cancel();
            if tokio::time::timeout(RECORDS, calls.idle()).await.is_err() {
                tracing::error!("calls of MCP clients did not end when they were cancelled");
            }
        }
        calls.closed.cancel();
    }
}
