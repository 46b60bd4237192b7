//! A capability by value.

use tool_runtime::{ToolError, capability, tool};

/// Reads a calendar.
#[capability(effect = read_only)]
trait Calendar {
    fn next(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// The clock.
    clock: Box<dyn Calendar>,
) -> Result<i64, ToolError> {
    Ok(clock.next())
}

fn main() {}
