//! Two attributes on one item. The second one is not expanded, so that this is the only mistake.

use tool_runtime::{ToolError, tool};

/// Counts.
#[tool(name = "core__count", effect = read_only, redact = ["$"])]
#[tool(name = "core__size", effect = read_only, redact = ["$"])]
fn count() -> Result<u32, ToolError> {
    Ok(1)
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
#[tool_runtime::tool(name = "core__sum", effect = read_only, redact = ["$"])]
struct Add {
    /// The first.
    left: u32,
}

#[tool]
impl Add {
    async fn run(self) -> Result<u32, ToolError> {
        Ok(self.left)
    }
}

fn main() {
    let _ = count();
}
