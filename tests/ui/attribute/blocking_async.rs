//! A thread for what does not block.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], blocking)]
async fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
