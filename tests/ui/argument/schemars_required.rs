//! A requirement that only the schema would know.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[schemars(required)]
    left: Option<i64>,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
