//! An `impl` without `run`.

use tool_runtime::{tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    fn sum(&self) -> i64 {
        self.left
    }
}

fn main() {}
