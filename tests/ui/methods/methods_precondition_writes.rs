//! A precondition that borrows a capability that does more than read.

use tool_runtime::{Precondition, ToolError, capability, tool};

/// Pays.
#[capability(effect = external_side_effect)]
trait Bank {
    fn pay(&self, cents: i64) -> i64;
}

/// Pays out.
#[tool(name = "bank__pay", effect = external_side_effect, redact = ["$"])]
struct Pay {
    /// How much.
    cents: i64,
}

#[tool]
impl Pay {
    async fn run(self, bank: &dyn Bank) -> Result<i64, ToolError> {
        Ok(bank.pay(self.cents))
    }

    async fn precondition(self, bank: &dyn Bank) -> Result<Precondition, ToolError> {
        Ok(Precondition::of("paid", bank.pay(self.cents)))
    }
}

fn main() {}
