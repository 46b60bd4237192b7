//! Constraints that the schema of their type does not have.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Name.
    #[schemars(range(min = 1))]
    name: String,
    /// How many.
    #[schemars(length(min = 1), title = "Count")]
    count: Option<u32>,
    /// Whether.
    #[schemars(pattern("a"))]
    whether: bool,
    /// Title.
    #[schemars(inner(length(min = 1), pattern("a")))]
    title: String,
) -> Result<(), ToolError> {
    let _ = (name, count, whether, title);
    Ok(())
}

fn main() {}
