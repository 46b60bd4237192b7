//! A context to write to.

use tool_runtime::{ToolContext, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    context: &mut ToolContext,
) -> Result<(), ToolError> {
    let _ = (context,);
    Ok(())
}

fn main() {}
