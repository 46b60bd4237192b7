//! Effects that do not exist: a typo, and no effect at all.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = readonly, redact = [])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
