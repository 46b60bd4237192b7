//! A text that is borrowed for a lifetime.

use tool_runtime::{ToolError, tool};

/// Counts.
#[tool(name = "core__count", effect = read_only, redact = ["$"])]
fn count<'a>(
    /// The name.
    name: &'a str,
) -> Result<usize, ToolError> {
    Ok(name.len())
}

fn main() {}
