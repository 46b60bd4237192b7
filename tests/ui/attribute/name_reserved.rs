//! The namespace of discovered tools.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "mcp__add", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
