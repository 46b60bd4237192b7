//! An error that operators could not read.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<i64, String> {
    Err(String::new())
}

fn main() {}
