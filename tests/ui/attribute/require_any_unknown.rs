//! Names that are no arguments.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], require_any = [lef, sum, right])]
fn add(
    /// Left.
    left: Option<i64>,
    /// Right.
    right: Option<i64>,
) -> Result<i64, ToolError> {
    Ok(left.unwrap_or(0) + right.unwrap_or(0))
}

fn main() {}
