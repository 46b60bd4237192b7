use tool_runtime::{ToolError, capability, tool};

/// Reads.
#[capability(effect = read_only kind = "clock")]
trait Clock {}

/// Adds.
#[tool(name = "core__add" effect = read_only, redact = ["$"] timeout = "3s", idempotent blocking)]
fn add(
    /// Left.
    #[arg(default = 3 sensitive)]
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left)
}

fn main() {}
