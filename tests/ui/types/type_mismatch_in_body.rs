//! A mistake in the body is the compiler's, and nothing is added to it.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// Left.
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left.to_string())
}

fn main() {}
