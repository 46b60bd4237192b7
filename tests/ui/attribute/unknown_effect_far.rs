//! An effect that is like none.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = safe, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
