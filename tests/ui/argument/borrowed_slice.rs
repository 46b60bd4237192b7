//! A list of texts, borrowed.

use tool_runtime::{ToolError, tool};

/// Counts.
#[tool(name = "core__count", effect = read_only, redact = ["$"])]
fn count(
    /// The names.
    names: &[String],
) -> Result<usize, ToolError> {
    Ok(names.len())
}

fn main() {}
