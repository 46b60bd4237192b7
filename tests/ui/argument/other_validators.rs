//! Attributes that schemars would read and serde would not.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
struct Add {
    /// Left.
    #[validate(range(max = 9))]
    left: i64,
}

fn main() {}
