//! An argument whose name on the wire would be read as two.

use tool_runtime::{tool, ToolError};

/// Deletes a task.
#[tool(name = "tasks__delete", effect = state_change, redact = [], summary = "Deletes the task of {owner}")]
fn delete(
    /// Its owner.
    #[serde(rename = "task.owner")]
    owner: String,
) -> Result<usize, ToolError> {
    Ok(owner.len())
}

fn main() {}
