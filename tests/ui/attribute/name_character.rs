//! A character that providers refuse.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add.numbers", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
