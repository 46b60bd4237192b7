//! The namespaces of discovered tools and of graphs, and the name of a tool of the library.

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

/// Searches.
#[tool(name = "tools__search", effect = read_only, redact = [])]
fn search() -> Result<(), ToolError> {
    Ok(())
}

/// Adds.
#[tool(name = "mcp__srv__add", effect = read_only, redact = [])]
fn add_there() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
