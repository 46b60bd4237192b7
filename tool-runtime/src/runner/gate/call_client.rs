//! [`CallClient`]: the MCP client that made one call.

use std::sync::Arc;

use async_trait::async_trait;

use tokio_util::sync::CancellationToken;

use crate::capability::Capabilities;
use crate::runner::Run;
use crate::store::{Key, PendingCall, StoreError, Transaction};

/// The client that made a call.
pub(crate) struct CallClient {
    /// Whether the called name is in the client's tool list. If `false`, the call is refused as an unknown tool.
    pub(crate) is_offered: bool,
    /// The capabilities of the client that the tool may use.
    pub(crate) offers: Capabilities,
    /// Fires when the client cancels the call, and when the run is cancelled.
    pub(crate) cancellation: Arc<CancellationToken>,
    /// Stores the server's own entry when the call is suspended.
    pub(crate) server: Option<Arc<dyn KeepsCall>>,
}

/// Stores an entry of the server in the transaction that suspends a call, so that the client finds the call later.
#[async_trait]
pub(crate) trait KeepsCall: Send + Sync {
    /// Returns the entry to write with the call. `None` if the call may not wait.
    async fn entry(&self, run: &Run, call: &PendingCall) -> Result<Option<ServerEntry>, StoreError>;

    /// Tells the server the result of the transaction: `Some(true)` if the call waits, `Some(false)` if it does not
    /// wait because of the server's entry, `None` if it does not wait because of another reason.
    fn entered(&self, waits: Option<bool>);
}

/// The write of a server in the transaction that suspends a call.
pub(crate) struct ServerEntry {
    pub(crate) keys: Vec<Key>,
    /// Returns `false`, and writes nothing, if the call may not wait.
    pub(crate) write: WriteEntry,
}

type WriteEntry = Box<dyn Fn(&mut Transaction) -> Result<bool, StoreError> + Send>;
