//! Files inside the output of a tool.

use tool_runtime::{tool, ToolError, WithMedia};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<Vec<WithMedia<i64>>, ToolError> {
    Ok(vec![WithMedia::new(0)])
}

fn main() {}
