//! Nothing behind the separator.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
