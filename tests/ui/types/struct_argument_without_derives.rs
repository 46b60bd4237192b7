//! The field of a struct tool cannot be parsed.

use tool_runtime::{Call, ToolComponent, ToolError, tool};

#[derive(Debug)]
struct Number(i64);

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: Number,
}

impl ToolComponent for Add {
    type Capabilities = ();
    type Output = i64;

    async fn run(self, (): (), _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(0)
    }
}

fn main() {}
