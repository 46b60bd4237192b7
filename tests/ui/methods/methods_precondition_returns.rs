//! A precondition that returns nothing, next to one that returns another type.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    async fn run(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }

    async fn precondition(self) {}
}

/// Subtracts.
#[tool(name = "core__subtract", effect = read_only, redact = ["$"])]
struct Subtract {
    /// Left.
    left: i64,
}

#[tool]
impl Subtract {
    async fn run(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }

    async fn precondition(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }
}

fn main() {}
