//! [`CallClient`]: the client at the other end of a connection, as far as one call needs it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::capability::Capabilities;
use crate::runner::open::OpenCall;

/// What one call has of the client that made it.
pub(crate) struct CallClient {
    /// Whether the client knows the tool by the name that it called. Otherwise there is no such tool for it.
    pub(crate) is_offered: bool,
    /// What the tool may ask of it.
    pub(crate) offers: Capabilities,
    /// Fires when the client cancels the call, and when the run is cancelled.
    pub(crate) cancellation: Arc<CancellationToken>,
}

impl OpenCall {
    /// What cancels the call: its run, or its client.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        self.client.as_ref().map_or(&self.run().options().cancellation, |client| &client.cancellation)
    }
}
