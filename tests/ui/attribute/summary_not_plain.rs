//! A sentence of two lines, and one that hides a character.

use tool_runtime::{tool, ToolError};

/// Deletes a task.
#[tool(name = "tasks__delete", effect = state_change, redact = [], summary = "Deletes a task.\nReally.")]
fn delete() -> Result<i64, ToolError> {
    Ok(1)
}

/// Deletes a note.
#[tool(name = "notes__delete", effect = state_change, redact = [], summary = "Deletes a \u{202e}note.")]
fn forget() -> Result<i64, ToolError> {
    Ok(1)
}

fn main() {}
