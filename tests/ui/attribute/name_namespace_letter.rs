//! A namespace that starts with a digit.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "1core__add", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
