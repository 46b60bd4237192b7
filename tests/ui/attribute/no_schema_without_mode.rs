//! Unvalidated calls without a condition.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], allow_no_schema)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
