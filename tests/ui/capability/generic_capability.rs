use tool_runtime::{ToolError, capability, tool};

/// Finds parts.
#[capability(effect = read_only)]
trait Lookup<T> {
    fn find(&self, id: u64) -> Option<T>;
}

/// Finds a part. The capability is the only mistake.
#[tool(name = "parts__find", effect = read_only, redact = ["$"])]
fn find(
    parts: &dyn Lookup<String>,
    /// Id of the part.
    id: u64,
) -> Result<Option<String>, ToolError> {
    Ok(parts.find(id))
}

fn main() {}
