//! An argument that has no schema.

use tool_runtime::{tool, ToolError};

#[derive(serde::Deserialize)]
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
