//! A limit as text.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], max_result_bytes = "32 KiB")]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
