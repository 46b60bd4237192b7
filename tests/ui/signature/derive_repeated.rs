//! Derives that the macro writes.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Add {
    /// Left.
    left: i64,
}

fn main() {}
