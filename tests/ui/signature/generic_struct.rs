//! A generic struct.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
struct Add<T> {
    /// Left.
    left: T,
}

fn main() {}
