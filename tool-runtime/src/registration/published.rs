//! [`Published`]: the definition of a discovered tool as its server publishes it now.
//!
//! A file of its own, because the catalog and the runner read it and the MCP source implements it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;

use crate::tool::Hash;

/// The current definition of a tool at its server. The catalog keeps the definition that it was built with; a call
/// needs both to be the same.
#[async_trait]
pub(crate) trait Published: Send + Sync {
    /// Returns the hash that a policy would pin for the present definition. `None` if the server does not list the
    /// tool, if the tool is quarantined, or if its definition has changed back and forth.
    fn pin(&self) -> Option<Hash>;

    /// Returns a counter that all tools of the server share. It increases whenever [`pin`](Self::pin) of one of them
    /// may change, so a reader compares the counter in place of every pin. It increases under the lock of the pins: a
    /// reader of the new count that then requests a pin gets the new one.
    fn changes(&self) -> &Arc<AtomicU64>;

    /// Connects to the server, and lists its tools again if that is due. Called before a call begins.
    async fn ready(&self) -> Result<(), NotReady>;
}

/// The server cannot be reached; the text is for operators.
#[derive(Debug)]
pub(crate) struct NotReady(pub(crate) String);
