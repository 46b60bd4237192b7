//! A type that does not exist.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// Left.
    left: Numbr,
) -> Result<Numbr, ToolError> {
    Ok(left)
}

fn main() {}
