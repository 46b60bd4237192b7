//! The same behind an alias.

use tool_runtime::tool;

type Answer = Result<i64, String>;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Answer {
    Err(String::new())
}

fn main() {}
