use tool_runtime::call::Violation;
use tool_runtime::{ToolError, tool};

/// Moves parts.
#[tool(name = "parts__move", effect = read_only, redact = ["$"], validate = differ(from, too))]
fn move_parts(
    /// Where from.
    from: String,
    /// Where to.
    to: String,
) -> Result<String, ToolError> {
    Ok(from + &to)
}

fn differ(_: &str, _: &str) -> Result<(), Violation> {
    Ok(())
}

fn main() {}
