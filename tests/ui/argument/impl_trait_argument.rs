//! Types without a name.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    left: Vec<impl ToString>,
    context: &impl Send,
) -> Result<(), ToolError> {
    let _ = (left, context);
    Ok(())
}

fn main() {}
