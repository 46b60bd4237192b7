use tool_runtime::{ToolError, tool};

struct Parts;

impl Parts {
    /// Counts.
    #[tool(name = "parts__count", effect = read_only, redact = ["$"])]
    fn count() -> Result<u32, ToolError> {
        Ok(3)
    }
}

fn main() {}
