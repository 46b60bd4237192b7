//! [`Published`]: the definition that an MCP server publishes now for one of its tools.
//!
//! The trait has its own file, because the catalog and the runner read it and the MCP source implements it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;

use crate::tool::Hash;

/// The current definition of a tool at its server. The catalog keeps the definition that it was built with. A call runs
/// only if both are the same.
#[async_trait]
pub(crate) trait Published: Send + Sync {
    /// Returns the hash with which a policy would allow (pin) the present definition. `None` if the server does not
    /// list the tool, if the tool is quarantined (excluded for a reason), or if its definition has changed back and
    /// forth.
    fn pin(&self) -> Option<Hash>;

    /// Returns a counter that all tools of the server share. It increases whenever the [`pin`](Self::pin) of one of
    /// them may change, so a reader can compare the counter in place of every pin. The server increases it under the
    /// lock of the pins: after a reader sees the new count, it gets the new pins.
    fn changes(&self) -> &Arc<AtomicU64>;

    /// Connects to the server, and lists its tools again if that is due. The runner awaits this before a call begins.
    async fn ready(&self) -> Result<(), NotReady>;
}

/// The error of a server that cannot be reached. The text is for operators.
#[derive(Debug)]
pub(crate) struct NotReady(pub(crate) String);
