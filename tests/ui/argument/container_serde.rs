//! Keys of serde on the item.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
#[serde(rename_all = "Camel", deny_unknown_fields, default, transparent)]
struct Add {
    /// Left.
    left: i64,
}

fn main() {}
