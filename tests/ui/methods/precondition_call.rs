//! A precondition that borrows the call, with which it could run its tool.

use tool_runtime::{Call, Precondition, ToolError, tool};

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

    async fn precondition(self, call: &Call<Self>) -> Result<Precondition, ToolError> {
        Ok(Precondition::of("run", call.run_id()))
    }
}

fn main() {}
