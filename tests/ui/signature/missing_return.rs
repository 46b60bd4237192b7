//! A function that returns nothing.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add() {}

fn main() {}
