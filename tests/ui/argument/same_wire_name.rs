//! Two arguments of one name.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    left: i64,
    /// Right.
    #[serde(rename = "left")]
    right: i64,
) -> Result<(), ToolError> {
    let _ = (left, right);
    Ok(())
}

fn main() {}
