//! A struct without braces.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
struct Add;

fn main() {}
