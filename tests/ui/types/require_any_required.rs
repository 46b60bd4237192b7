//! `require_any` names what is always there.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], require_any = [left, right])]
fn add(
    /// Left.
    left: i64,
    /// Right.
    right: Option<i64>,
) -> Result<i64, ToolError> {
    Ok(left + right.unwrap_or(0))
}

fn main() {}
