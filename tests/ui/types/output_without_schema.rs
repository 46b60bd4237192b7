//! An output without a schema.

use tool_runtime::{tool, ToolError};

#[derive(serde::Serialize)]
struct Sum(i64);

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<Sum, ToolError> {
    Ok(Sum(0))
}

fn main() {}
