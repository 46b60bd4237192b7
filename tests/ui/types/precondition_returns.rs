//! Preconditions of functions that are not `async`, return another type, or take something else.

use tool_runtime::{Precondition, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"], precondition = plain)]
fn add(
    /// Left.
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left)
}

/// Subtracts.
#[tool(name = "core__subtract", effect = read_only, redact = ["$"], precondition = number)]
fn subtract(
    /// Left.
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left)
}

/// Multiplies.
#[tool(name = "core__multiply", effect = read_only, redact = ["$"], precondition = text(left))]
fn multiply(
    /// Left.
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left)
}

fn plain(left: &i64) -> Result<Precondition, ToolError> {
    Ok(Precondition::of("left", left))
}

async fn number(left: &i64) -> Result<i64, ToolError> {
    Ok(*left)
}

async fn text(left: &str) -> Result<Precondition, ToolError> {
    Ok(Precondition::of("left", left))
}

fn main() {}
