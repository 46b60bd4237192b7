//! A struct that does not say how it runs.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

fn main() {}
