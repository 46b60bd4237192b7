//! Arguments without a name.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Both.
    (left, right): (i64, i64),
    /// None.
    _: i64,
) -> Result<(), ToolError> {
    let _ = (left, right);
    Ok(())
}

fn main() {}
