//! Constraints of arguments that have no schema.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [], allow_no_schema, no_schema_mode = reject_effects)]
fn add(
    /// Name.
    #[schemars(length(min = 1))]
    name: String,
    /// Names.
    #[schemars(inner(length(min = 1), pattern("a")), title = "Names")]
    names: Vec<String>,
) -> Result<(), ToolError> {
    let _ = (name, names);
    Ok(())
}

fn main() {}
