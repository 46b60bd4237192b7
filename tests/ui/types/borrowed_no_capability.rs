//! A trait object of a trait that is no capability.

use tool_runtime::{tool, ToolError};

/// Reads the time.
trait Clock: Send + Sync {
    fn now(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    clock: &dyn Clock,
) -> Result<i64, ToolError> {
    Ok(clock.now())
}

fn main() {}
