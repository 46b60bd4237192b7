//! A tool without an allowlist.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only)]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
