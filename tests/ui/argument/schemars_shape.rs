//! Constraints in a shape that schemars does not read.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Name.
    #[schemars(pattern = "^a", length = 3)]
    name: String,
    /// How many.
    #[schemars(range)]
    count: u32,
    /// Names.
    #[schemars(inner = "a", inner(contains = "b"))]
    names: Vec<String>,
    /// Whom.
    #[schemars(regex = "^a", email = true)]
    whom: String,
) -> Result<(), ToolError> {
    let _ = (name, count, names, whom);
    Ok(())
}

fn main() {}
