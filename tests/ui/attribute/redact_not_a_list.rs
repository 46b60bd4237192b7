//! An allowlist that is one string.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = "sum")]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
