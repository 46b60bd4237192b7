//! Keys of client tools on a server tool.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], client_result = bool, prepare = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
