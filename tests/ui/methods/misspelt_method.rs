//! A method that the runtime would never call.

use tool_runtime::{Reconciled, ToolError, tool};

/// Pays.
#[tool(name = "bank__pay", effect = external_side_effect, redact = ["$"])]
struct Pay {
    /// How much.
    cents: u32,
}

#[tool]
impl Pay {
    async fn run(self) -> Result<u32, ToolError> {
        Ok(self.cents)
    }

    async fn reconsile(self) -> Result<Reconciled<u32>, ToolError> {
        Ok(Reconciled::Unknown)
    }

    fn pre_condition(&self) -> u32 {
        self.cents
    }
}

fn main() {}
