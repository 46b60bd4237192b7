//! Attributes of arguments on what the runtime lends.

use tool_runtime::{ToolContext, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    #[arg(sensitive)] context: &ToolContext,
    #[serde(rename = "ctx")] again: &ToolContext,
) -> Result<(), ToolError> {
    let _ = (context, again);
    Ok(())
}

fn main() {}
