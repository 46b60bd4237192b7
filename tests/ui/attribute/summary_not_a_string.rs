//! A sentence without quotes, and the key twice.

use tool_runtime::{tool, ToolError};

/// Deletes a task.
#[tool(name = "tasks__delete", effect = state_change, redact = [], summary = delete_it, summary = "Deletes a task")]
fn delete() -> Result<i64, ToolError> {
    Ok(1)
}

fn main() {}
