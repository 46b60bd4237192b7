//! Keys of schemars on the item.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
#[schemars(description = "Adds.")]
struct Add {
    /// Left.
    left: i64,
}

fn main() {}
