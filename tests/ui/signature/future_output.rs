//! A function that returns a future.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> impl Future<Output = Result<i64, ToolError>> {
    async { Ok(0) }
}

fn main() {}
