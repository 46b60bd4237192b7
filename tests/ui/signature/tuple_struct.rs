//! Arguments without names.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
struct Add(i64, i64);

fn main() {}
