//! A client's result whose schema says nothing.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], execution = client, prepare = ["$"], client_result = serde_json::Value)]
fn add() -> Result<i64, ToolError> {
    Ok(0)
}

fn main() {}
