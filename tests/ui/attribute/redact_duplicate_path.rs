//! A path that is shown twice.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["sum", "sum"], model = ["digits", "sum"])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
