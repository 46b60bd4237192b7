use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], precondition = "balance")]
fn add(
    /// Left.
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left)
}

fn main() {}
