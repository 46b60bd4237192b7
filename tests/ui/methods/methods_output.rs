//! A method whose output has no schema.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

struct Sum(i64);

#[tool]
impl Add {
    async fn run(self) -> Result<Sum, ToolError> {
        Ok(Sum(self.left))
    }
}

fn main() {}
