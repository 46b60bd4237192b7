//! A third place to run.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], execution = browser)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
