//! Arguments that the schema would not show.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[serde(flatten)]
    left: std::collections::BTreeMap<String, i64>,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
