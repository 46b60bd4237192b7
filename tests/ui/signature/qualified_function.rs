//! A function that cannot be called like any other.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
const unsafe extern "C" fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
