//! Two defaults.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[arg(default = 1)]
    #[serde(default)]
    left: i64,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
