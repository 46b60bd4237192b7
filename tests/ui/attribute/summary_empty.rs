//! A sentence without words, and no sentence at all.

use tool_runtime::{tool, ToolError};

/// Deletes a task.
#[tool(name = "tasks__delete", effect = state_change, redact = [], summary = " ")]
fn delete() -> Result<i64, ToolError> {
    Ok(1)
}

/// Deletes a note.
#[tool(name = "notes__delete", effect = state_change, redact = [], summary = [])]
fn forget() -> Result<i64, ToolError> {
    Ok(1)
}

fn main() {}
