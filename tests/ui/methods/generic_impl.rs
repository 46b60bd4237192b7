//! An `impl` with parameters, and one with a `where` clause.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl<T> Add {
    fn run(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }
}

/// Makes.
#[tool(name = "core__make", effect = read_only, redact = ["$"])]
struct Make {}

#[tool]
impl Make
where
    i64: Copy,
{
    fn run(self) -> Result<i64, ToolError> {
        Ok(1)
    }
}

fn main() {}
