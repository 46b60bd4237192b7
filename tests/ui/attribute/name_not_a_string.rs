//! A name without quotes.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = core__add, effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
