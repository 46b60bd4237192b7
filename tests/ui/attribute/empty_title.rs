//! A title of nothing.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], title = "")]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
