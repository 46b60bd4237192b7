//! More than a tool can borrow.

use tool_runtime::{ToolContext, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    a: &ToolContext,
    b: &ToolContext,
    c: &ToolContext,
    d: &ToolContext,
    e: &ToolContext,
    f: &ToolContext,
    g: &ToolContext,
    h: &ToolContext,
    i: &ToolContext,
) -> Result<(), ToolError> {
    let _ = (a, b, c, d, e, f, g, h, i);
    Ok(())
}

fn main() {}
