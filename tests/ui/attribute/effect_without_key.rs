//! The effect without its key.

use tool_runtime::{ToolError, capability, tool};

/// Reads the time.
#[capability(read_only)]
trait Clock {}

/// Counts.
#[tool(name = "core__count", state_change, redact = ["$"])]
fn count() -> Result<u32, ToolError> {
    Ok(1)
}

fn main() {
    let _ = count();
}
