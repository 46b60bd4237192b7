//! A sentence that one above it takes the place of.

use tool_runtime::{tool, ToolError};

/// Changes a task.
#[tool(
    name = "tasks__change",
    effect = state_change,
    redact = [],
    summary = ["Changes the task {id}", "Renames the task {id} to {title}", "Changes a task"]
)]
fn change(
    /// Its id.
    id: String,
    /// The new title.
    title: Option<String>,
) -> Result<usize, ToolError> {
    Ok(id.len() + title.map_or(0, |title| title.len()))
}

fn main() {}
