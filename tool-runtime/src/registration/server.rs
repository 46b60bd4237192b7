//! [`ToolServer`]: an MCP server whose tools are in a catalog, or are added when the server lists them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;

use crate::policy::Unready;
use crate::registration::DynamicTool;

/// One MCP server.
#[async_trait]
pub(crate) trait ToolServer: Send + Sync {
    /// Returns the prefix that the names of all of its tools have, and no other tool's name.
    fn prefix(&self) -> &str;

    /// Returns the tools that the server has listed; `None` before its first list.
    fn tools(&self) -> Option<Vec<DynamicTool>>;

    /// Returns a counter that increases before the value of [`tools`](Self::tools) changes.
    fn changes(&self) -> &Arc<AtomicU64>;

    /// Returns the kind of connection that calls of the tools need; `None` if they need none.
    fn connection(&self) -> Option<&'static str>;

    /// Returns the reason why no call of this tool can run now under any policy.
    fn unready(&self, name: &str) -> Option<Unready>;

    /// Waits until the server has listed its tools, or has failed to.
    #[cfg(feature = "mcp-server")]
    async fn ready(&self) -> Result<(), crate::registration::NotReady>;
}
