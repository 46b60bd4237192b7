//! A client's result that cannot be validated.

use tool_runtime::{tool, ToolError};

struct Pressed;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], execution = client, prepare = ["$"], client_result = Pressed)]
fn add() -> Result<i64, ToolError> {
    Ok(0)
}

fn main() {}
