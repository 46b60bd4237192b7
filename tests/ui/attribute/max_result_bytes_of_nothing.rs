//! A limit of nothing.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], max_result_bytes = 0)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
