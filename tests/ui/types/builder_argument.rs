//! The catalog's builder, given the function in place of its type.

use tool_runtime::{ToolCatalog, ToolError, tool};

/// Counts.
#[tool(name = "core__count", effect = read_only, redact = ["$"])]
fn count() -> Result<u32, ToolError> {
    Ok(1)
}

fn main() {
    let _ = ToolCatalog::builder().tool(count).build();
}
