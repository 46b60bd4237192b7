//! A condition for nothing.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], no_schema_mode = approve_each)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
