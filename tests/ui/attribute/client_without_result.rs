//! A client tool that says not what comes back.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], execution = client, prepare = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
