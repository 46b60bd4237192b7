//! A path without quotes.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [sum, "digits"])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
