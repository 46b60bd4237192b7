//! A secret from the model.

use tool_runtime::{Secret, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// Left.
    left: Secret<String>,
) -> Result<i64, ToolError> {
    Ok(i64::from(left.expose().is_empty()))
}

fn main() {}
