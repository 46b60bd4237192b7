//! A hook that takes something else.

use tool_runtime::{tool, ToolError};

fn positive(left: i64) -> bool {
    left > 0
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], validate = positive)]
fn add(
    /// Left.
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left)
}

fn main() {}
