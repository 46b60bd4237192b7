//! Keys that do not exist: a typo, and no key at all.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], tittle = "Add", colour = "red")]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
