//! Arguments that borrow below the top.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    left: Vec<&str>,
    /// Right.
    right: std::borrow::Cow<'_, str>,
) -> Result<(), ToolError> {
    let _ = (left, right);
    Ok(())
}

fn main() {}
