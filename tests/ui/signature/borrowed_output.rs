//! An output that borrows.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<&str, ToolError> {
    Ok("")
}

fn main() {}
