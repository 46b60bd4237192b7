//! A method that borrows text, and one that returns no `Result`.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    async fn run(self, name: &str) -> Result<i64, ToolError> {
        Ok(self.left + name.len() as i64)
    }
}

/// Makes.
#[tool(name = "core__make", effect = read_only, redact = ["$"])]
struct Make {}

#[tool]
impl Make {
    async fn run(self) -> i64 {
        1
    }
}

fn main() {}
