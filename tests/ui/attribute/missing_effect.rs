//! A tool without an effect.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
