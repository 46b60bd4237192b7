//! [`Remote`]: a tool of a server, as the catalog runs it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::call::ToolContext;
use crate::component::WithMedia;
use crate::error::{ErrorKind, ToolError};
use crate::mcp::source::result;
use crate::mcp::source::server::Server;
use crate::registration::{DynamicHandler, NotReady, Published};
use crate::tool::Hash;

/// A tool with the definition that the catalog has.
pub(super) struct Remote {
    pub(super) server: Server,
    /// What the server calls it.
    pub(super) raw: String,
    pub(super) name: String,
    pub(super) pin: Hash,
    /// Whether its definition says what `structuredContent` is.
    pub(super) is_structured: bool,
}

#[async_trait]
impl DynamicHandler for Remote {
    async fn call(&self, arguments: &Value, context: &ToolContext) -> Result<Value, ToolError> {
        Ok(self.call_with_media(arguments, context).await?.into_parts().0)
    }

    /// One request. It is not repeated, whatever becomes of it.
    async fn call_with_media(&self, arguments: &Value, _: &ToolContext) -> Result<WithMedia<Value>, ToolError> {
        let not_sent = |why: &str, code: &'static str| ToolError::of_source(ErrorKind::Tool, why).with_code(code);
        if self.pin() != Some(self.pin) {
            return Err(not_sent("the server publishes another definition of the tool, or none", "definition_changed"));
        }
        let Some(connection) = self.server.state.connection() else {
            return Err(not_sent("the connection ended before the call was sent", "server_unavailable"));
        };
        let params = json!({"name": self.raw, "arguments": arguments});
        let within = self.server.state.limits.call;
        match connection.request("tools/call", Some(&self.raw), params, within).await {
            Ok(text) => result::read(&text, self.is_structured),
            Err(failure) => Err(result::failed(&failure)),
        }
    }
}

#[async_trait]
impl Published for Remote {
    fn pin(&self) -> Option<Hash> {
        self.server.state.pin(&self.name)
    }

    fn changes(&self) -> &Arc<AtomicU64> {
        &self.server.state.changes
    }

    async fn ready(&self) -> Result<(), NotReady> {
        self.server.ready(false).await
    }
}
