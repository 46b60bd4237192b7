//! Keys of `#[arg]` that do not exist.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[arg(secret, defualt = 1, description = "Left.")]
    left: i64,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
