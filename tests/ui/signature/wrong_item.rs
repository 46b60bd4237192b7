//! Items that are no tools.

use tool_runtime::tool;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
enum Add {
    Left,
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
trait Adds {}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
mod adding {}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
pub const ADD: i64 = 0;

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
union Add2 {
    left: i64,
}

fn main() {}
