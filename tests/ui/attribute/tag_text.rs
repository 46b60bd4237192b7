//! Tags that no policy could match.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], tags = ["math", " math", "math"])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
