//! Two keys without a comma.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact [], "idempotent")]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
