//! A method that is in some builds only.

use tool_runtime::{Reconciled, ToolError, tool};

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

    #[cfg(all())]
    async fn reconcile(self) -> Result<Reconciled<i64>, ToolError> {
        Ok(Reconciled::Unknown)
    }
}

fn main() {}
