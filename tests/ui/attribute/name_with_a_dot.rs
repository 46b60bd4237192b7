//! Names as other libraries write them.

use tool_runtime::{ToolError, tool};

/// Counts.
#[tool(name = "stock.count", effect = read_only, redact = ["$"])]
fn count() -> Result<u32, ToolError> {
    Ok(1)
}

/// Counts.
#[tool(name = "stock::sum", effect = read_only, redact = ["$"])]
fn sum() -> Result<u32, ToolError> {
    Ok(1)
}

/// Counts.
#[tool(name = "stock.a.b", effect = read_only, redact = ["$"])]
fn three() -> Result<u32, ToolError> {
    Ok(1)
}

fn main() {}
