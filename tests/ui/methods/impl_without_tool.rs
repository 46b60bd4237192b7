//! The `impl` block of a struct that is not a tool: its methods would never be called.

use tool_runtime::{ToolError, tool};

/// Adds.
struct Add {
    left: u32,
}

#[tool]
impl Add {
    async fn run(self) -> Result<u32, ToolError> {
        Ok(self.left)
    }
}

fn main() {}
