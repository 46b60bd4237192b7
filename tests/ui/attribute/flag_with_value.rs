//! A flag that is given a value.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], idempotent = true)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
