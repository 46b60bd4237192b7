//! A method.

use tool_runtime::{tool, ToolError};

struct Calculator;

impl Calculator {
    /// Adds.
    #[tool(name = "core__add", effect = read_only, redact = [])]
    fn add(
        &self,
        /// Left.
        left: i64,
    ) -> Result<i64, ToolError> {
        Ok(left)
    }

    /// Makes one.
    #[tool(name = "core__make", effect = read_only, redact = [])]
    fn make() -> Result<Self, ToolError> {
        Ok(Self)
    }
}

fn main() {}
