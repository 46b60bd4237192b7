//! Two dots in a row.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["sum..digits", ""])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
