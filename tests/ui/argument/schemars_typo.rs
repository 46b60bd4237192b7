//! A typo.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[schemars(lenght(min = 1), inner(rang(max = 2)))]
    left: Vec<i64>,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
