//! Paths as other tools write them.

use tool_runtime::{ToolError, tool};

/// Counts.
#[tool(
    name = "core__count",
    effect = read_only,
    redact = ["$.id", "/owner/name", "lots[0].id", "/lots/0/count", "[0]", "$[*].price", "lots->id", "owner::name", "owner[name]"],
)]
fn count() -> Result<u32, ToolError> {
    Ok(1)
}

fn main() {}
