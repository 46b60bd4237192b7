//! A precondition that is written by hand and uses a capability that does more than read.

use tool_runtime::{Call, Cap, Capabilities, Precondition, ToolComponent, ToolError, capability, tool};

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

impl ToolComponent for Pay {
    type Capabilities = (Cap<dyn Bank>,);
    type Output = i64;

    async fn run(self, (bank,): Self::Capabilities, _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(bank.pay(self.cents))
    }

    async fn precondition(self, capabilities: Capabilities) -> Result<Precondition, ToolError> {
        Ok(Precondition::of("paid", capabilities.read::<dyn Bank>()?.pay(self.cents)))
    }
}

fn main() {}
