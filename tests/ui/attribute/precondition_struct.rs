use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], precondition = sum)]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    async fn run(self) -> Result<i64, ToolError> {
        Ok(self.left)
    }
}

fn main() {}
