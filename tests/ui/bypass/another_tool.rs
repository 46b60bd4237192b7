//! The call of one tool does not run another.

use tool_runtime::{Call, ToolComponent, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {}

impl ToolComponent for Add {
    type Capabilities = ();
    type Output = i64;

    async fn run(self, (): (), _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(0)
    }
}

/// Adds twice.
#[tool(name = "core__twice", effect = external_side_effect, redact = ["$"])]
struct Twice {}

impl ToolComponent for Twice {
    type Capabilities = ();
    type Output = i64;

    async fn run(self, (): (), call: &Call<Self>) -> Result<i64, ToolError> {
        Add {}.run((), call).await
    }
}

fn main() {}
