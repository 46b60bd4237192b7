//! Generic functions and structs.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add<T: ToString>(
    /// Left.
    left: i64,
) -> Result<i64, ToolError>
where
    T: Default, {
    Ok(left)
}

fn main() {}
