//! A struct tool whose output's schema says nothing.

use tool_runtime::{Call, ToolComponent, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {}

impl ToolComponent for Add {
    type Capabilities = ();
    type Output = serde_json::Value;

    async fn run(self, (): (), _: &Call<Self>) -> Result<serde_json::Value, ToolError> {
        Ok(serde_json::Value::Null)
    }
}

fn main() {}
