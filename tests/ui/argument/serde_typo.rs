//! A typo, which would make serde's derive vanish.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[serde(renam = "l", rename)]
    left: i64,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
