//! An attribute that means nothing here.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    /// Left.
    #[clap(long)]
    left: i64,
) -> Result<(), ToolError> {
    let _ = (left,);
    Ok(())
}

fn main() {}
