//! An argument that borrows text.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// Left.
    left: &str,
) -> Result<i64, ToolError> {
    Ok(left.parse()?)
}

fn main() {}
