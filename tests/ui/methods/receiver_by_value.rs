//! Methods without a `self` of their own.

use tool_runtime::{Reconciled, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    async fn run(&self) -> Result<i64, ToolError> {
        Ok(self.left)
    }

    async fn reconcile() -> Result<Reconciled<i64>, ToolError> {
        Ok(Reconciled::Unknown)
    }
}

fn main() {}
