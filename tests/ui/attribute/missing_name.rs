//! A tool without a name.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
