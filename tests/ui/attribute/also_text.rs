//! Words that no user writes.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], also = ["", "--", " sum", "total", "Total"])]
fn add() -> Result<(), ToolError> {
    Ok(())
}

/// Subtracts.
#[tool(name = "core__sub", effect = read_only, redact = [], also = [minus], synonyms = ["difference"])]
fn sub() -> Result<(), ToolError> {
    Ok(())
}

fn main() {}
