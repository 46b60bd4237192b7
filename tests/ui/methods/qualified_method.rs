//! A `run` that is more than a function.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    const unsafe extern "C" fn run(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }
}

fn main() {}
