//! Keys without their values.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name, effect = , redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
