//! One of none.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], require_any = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
