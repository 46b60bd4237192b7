//! An effect as a string.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = "read_only", redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
