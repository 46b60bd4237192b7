//! A timeout that is a number.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], timeout = 30)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
