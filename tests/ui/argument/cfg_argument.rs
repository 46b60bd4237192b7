//! An argument that is there sometimes.

use tool_runtime::{ToolContext, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[cfg(unix)]
    left: i64,
    #[cfg(unix)] context: &ToolContext,
) -> Result<(), ToolError> {
    let _ = (left, context);
    Ok(())
}

fn main() {}
