//! A sentence that nobody reads to its end.

use tool_runtime::{tool, ToolError};

/// Deletes a task.
#[tool(
    name = "tasks__delete",
    effect = state_change,
    redact = [],
    summary = "Deletes one task, with everything that belongs to it: its notes, its files, its comments, its history, its reminders, its watchers, its labels, its links to other tasks, and whatever else was ever kept with it."
)]
fn delete() -> Result<i64, ToolError> {
    Ok(1)
}

fn main() {}
