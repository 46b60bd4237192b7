//! A third mode.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], allow_no_schema, no_schema_mode = allow)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
