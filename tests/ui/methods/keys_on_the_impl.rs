//! The keys of the struct on its `impl`.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool(name = "core__add", timeout = "1s")]
impl Add {
    async fn run(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }
}

fn main() {}
