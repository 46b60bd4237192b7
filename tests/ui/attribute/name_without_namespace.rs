//! A name without a namespace.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "add", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
