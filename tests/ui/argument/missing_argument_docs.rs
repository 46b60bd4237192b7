//! An argument that no model would know to fill in.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    left: i64,
    /// Right.
    right: i64,
) -> Result<(), ToolError> {
    let _ = (left, right);
    Ok(())
}

fn main() {}
