//! A `run` with parameters.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    async fn run<T>(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }
}

fn main() {}
