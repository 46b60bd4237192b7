//! Names that are no arguments.

use tool_runtime::{tool, ToolComponent, ToolError, Call};

/// Deletes a task.
#[tool(
    name = "tasks__delete",
    effect = state_change,
    redact = [],
    summary = "Deletes the task \"{titel}\" of {owner.name} in {place}"
)]
fn delete(
    /// Its title.
    title: String,
    /// Its owner.
    owner: String,
) -> Result<usize, ToolError> {
    Ok(title.len() + owner.len())
}

/// Moves a task.
#[tool(name = "tasks__move", effect = state_change, redact = [], summary = "Moves a task to {dueDate}")]
#[serde(rename_all = "camelCase")]
struct Move {
    /// The day.
    due_date: String,
}

impl ToolComponent for Move {
    type Capabilities = ();
    type Output = usize;

    async fn run(self, (): (), _: &Call<Self>) -> Result<usize, ToolError> {
        Ok(self.due_date.len())
    }
}

/// Deletes all tasks.
#[tool(name = "tasks__clear", effect = state_change, redact = [], summary = "Deletes {count} tasks")]
fn clear() -> Result<usize, ToolError> {
    Ok(0)
}

fn main() {}
