//! A timeout that no call can keep.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], timeout = "0s")]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
