//! [`Published`]: the definition of a discovered tool as its server publishes it now.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;

use crate::tool::Hash;

/// The current definition of a tool at its server. The catalog keeps the definition that it was built with; a call
/// needs both to be the same.
#[async_trait]
pub(crate) trait Published: Send + Sync {
    /// The hash of the definition; `None` while the tool is withdrawn, quarantined or has changed back and forth.
    fn pin(&self) -> Option<Hash>;

    /// A counter that all tools of the server share. It increases whenever [`pin`](Self::pin) of one of them may
    /// change, so that the tools need not be asked one by one. Readers of a pin have to wait while it increases.
    fn changes(&self) -> &Arc<AtomicU64>;

    /// Connects to the server, and lists its tools again if that is due. Called before a call begins.
    async fn ready(&self) -> Result<(), NotReady>;
}

/// The server cannot be reached; the text is for operators.
#[derive(Debug)]
pub(crate) struct NotReady(pub(crate) String);
