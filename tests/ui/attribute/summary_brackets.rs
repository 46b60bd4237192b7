//! Optional parts that cannot be read.

use tool_runtime::{ToolError, tool};

/// Moves.
#[tool(
    name = "tasks__move",
    effect = state_change,
    redact = ["$"],
    summary = [
        "Moves {task}[ to {due}",
        "Moves {task} to {due}]",
        "Moves {task}[ to {due}[ at {time}]]",
        "Moves {task}[ away]",
        "Moves[ to {due}]",
        "Moves[ at {time}]",
    ],
)]
fn move_task(
    /// The task.
    task: String,
    /// The day.
    due: Option<String>,
    /// The time.
    time: Option<String>,
) -> Result<usize, ToolError> {
    Ok(task.len() + due.map_or(0, |due| due.len()) + time.map_or(0, |time| time.len()))
}

fn main() {}
