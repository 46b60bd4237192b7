//! A client tool whose output is a connection.

use tool_runtime::{Connection, ToolError, capability, tool};

/// Reads a calendar.
#[capability(effect = read_only, kind = "calendar")]
trait Calendar {
    fn next(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<Connection<dyn Calendar>, ToolError> {
    Err(ToolError::safe("no"))
}

fn main() {}
