//! An output that cannot be serialised.

use tool_runtime::{tool, ToolError};

struct Sum(i64);

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<Sum, ToolError> {
    Ok(Sum(0))
}

fn main() {}
