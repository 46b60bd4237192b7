//! An output whose schema says nothing.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<serde_json::Value, ToolError> {
    Ok(serde_json::Value::Null)
}

fn main() {}
