//! A client tool that says not what goes out.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], execution = client, client_result = bool)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
