//! A key that is given twice.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], effect = state_change)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
