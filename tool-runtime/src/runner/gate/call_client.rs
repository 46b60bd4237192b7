//! [`CallClient`]: the client at the other end of a connection, as far as one call needs it.

use std::sync::Arc;

use async_trait::async_trait;

use tokio_util::sync::CancellationToken;

use crate::capability::Capabilities;
use crate::runner::Run;
use crate::store::{Key, PendingCall, StoreError, Transaction};

/// What one call has of the client that made it.
pub(crate) struct CallClient {
    /// Whether the client knows the tool by the name that it called. Otherwise there is no such tool for it.
    pub(crate) is_offered: bool,
    /// What the tool may ask of it.
    pub(crate) offers: Capabilities,
    /// Fires when the client cancels the call, and when the run is cancelled.
    pub(crate) cancellation: Arc<CancellationToken>,
    /// The server, if it keeps a call that begins to wait.
    pub(crate) server: Option<Arc<dyn KeepsCall>>,
}

/// A server that keeps a call for its client, in the transaction in which the call begins to wait.
#[async_trait]
pub(crate) trait KeepsCall: Send + Sync {
    /// Returns the entry to write with the call. `None` if the call may not wait.
    async fn entry(&self, run: &Run, call: &PendingCall) -> Result<Option<ServerEntry>, StoreError>;

    /// The transaction is over: `Some(true)` if the call waits, `Some(false)` if its entry was refused, `None` if it
    /// does not wait for another reason.
    fn entered(&self, waits: Option<bool>);
}

/// The write of a server, in the transaction in which a call begins to wait.
pub(crate) struct ServerEntry {
    pub(crate) keys: Vec<Key>,
    /// Returns `false` if the call may not wait. It has written nothing then.
    pub(crate) write: WriteEntry,
}

type WriteEntry = Box<dyn Fn(&mut Transaction) -> Result<bool, StoreError> + Send>;
