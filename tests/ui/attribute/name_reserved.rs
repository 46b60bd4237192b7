//! The namespaces of discovered tools and of graphs.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "mcp__add", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

/// Adds.
#[tool(name = "graph__add", effect = read_only, redact = [])]
fn add_more() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
