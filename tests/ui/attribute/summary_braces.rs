//! Braces that are not closed, that close nothing, and that hold no name.

use tool_runtime::{tool, ToolError};

/// Deletes a task.
#[tool(name = "tasks__delete", effect = state_change, redact = [], summary = "Deletes {} of {owner}} or {title")]
fn delete(
    /// Its title.
    title: String,
    /// Its owner.
    owner: String,
) -> Result<usize, ToolError> {
    Ok(title.len() + owner.len())
}

fn main() {}
