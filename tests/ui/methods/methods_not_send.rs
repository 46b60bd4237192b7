//! A method whose future cannot move to another thread.

use tool_runtime::{ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

use std::rc::Rc;

#[tool]
impl Add {
    async fn run(self) -> Result<i64, ToolError> {
        let shared = Rc::new(self.left);
        std::future::ready(()).await;
        Ok(*shared)
    }
}

fn main() {}
