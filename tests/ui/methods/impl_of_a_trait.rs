//! The attribute on the implementation of the trait.

use tool_runtime::{Call, ToolComponent, ToolError, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

#[tool]
impl ToolComponent for Add {
    type Capabilities = ();
    type Output = i64;

    async fn run(self, (): (), _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(self.left)
    }
}

fn main() {}
