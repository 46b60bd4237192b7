//! A default that the schema cannot show.

use tool_runtime::{tool, ToolError};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number(i64);

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    /// Left.
    #[arg(default = Number(1))]
    left: Number,
) -> Result<i64, ToolError> {
    Ok(left.0)
}

fn main() {}
