//! A hook that is a closure.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], validate = |left| Ok(()))]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
