//! MCP in both directions: a catalog as a server, and servers as sources of tools.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod serve;
mod source;

use async_trait::async_trait;
use serde_json::Value;
use tool_runtime::registration::DynamicHandler;
use tool_runtime::{ToolContext, ToolError};

/// Returns its arguments.
pub(crate) struct Echo;

#[async_trait]
impl DynamicHandler for Echo {
    async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(arguments.clone())
    }
}
