//! A tool that no model would know to call.

use tool_runtime::{tool, ToolError};

//
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
