//! A function that cannot fail.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> i64 {
    0
}

fn main() {}
