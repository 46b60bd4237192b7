//! Evidence that no tool gives.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[arg(evidence = "list numbers")]
    left: String,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
