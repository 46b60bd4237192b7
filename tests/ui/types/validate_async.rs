//! A hook that waits.

use tool_runtime::call::Violation;
use tool_runtime::{ToolError, tool};

async fn positive(_: &i64) -> Result<(), Violation> {
    Ok(())
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], validate = positive)]
fn add(
    /// Left.
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left)
}

fn main() {}
