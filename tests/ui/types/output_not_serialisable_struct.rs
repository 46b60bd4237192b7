//! A struct tool whose output cannot be serialised.

use tool_runtime::{Call, ToolComponent, ToolError, tool};

struct Sum(i64);

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {}

impl ToolComponent for Add {
    type Capabilities = ();
    type Output = Sum;

    async fn run(self, (): (), _: &Call<Self>) -> Result<Sum, ToolError> {
        Ok(Sum(0))
    }
}

fn main() {}
