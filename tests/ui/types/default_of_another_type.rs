//! A default of the wrong type.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// Left.
    #[arg(default = "UTC")]
    left: String,
) -> Result<i64, ToolError> {
    Ok(left.parse()?)
}

fn main() {}
