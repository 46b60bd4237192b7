//! A second name that only the parser would know.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[serde(alias = "l")]
    left: i64,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
