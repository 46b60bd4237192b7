//! A name that some providers refuse.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", effect = read_only, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
