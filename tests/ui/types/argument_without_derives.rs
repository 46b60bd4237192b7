//! An argument that cannot be parsed.

use tool_runtime::{tool, ToolError};

struct Number(i64);

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// Left.
    left: Number,
) -> Result<i64, ToolError> {
    Ok(left.0)
}

fn main() {}
