//! A secret as output.

use tool_runtime::{Secret, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<Secret<String>, ToolError> {
    Ok(Secret::new(String::new()))
}

fn main() {}
