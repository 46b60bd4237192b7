//! A second separator.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add__numbers", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
