//! A `run` without an output, and with outputs that are not owned.

use tool_runtime::{Reconciled, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl Add {
    async fn run(self) {}

    async fn reconcile(self) -> Result<Reconciled<&str>, ToolError> {
        Ok(Reconciled::Unknown)
    }
}

fn main() {}
