//! A call is the runner's to make.

use tool_runtime::{Call, ToolComponent, ToolContext, ToolError, tool};

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

fn forge(context: ToolContext) -> Call<Add> {
    Call { context, tool: std::marker::PhantomData }
}

fn main() {}
