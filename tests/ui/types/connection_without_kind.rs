//! A connection of a trait that names no kind of account.

use tool_runtime::{Connection, ToolError, capability, tool};

/// Reads a calendar.
#[capability(effect = read_only)]
trait Calendar {
    fn next(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    calendar: &Connection<dyn Calendar>,
) -> Result<i64, ToolError> {
    Ok(calendar.next())
}

fn main() {}
