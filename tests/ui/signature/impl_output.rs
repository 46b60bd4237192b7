//! An output without a name.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<impl ToString, ToolError> {
    Ok("")
}

fn main() {}
