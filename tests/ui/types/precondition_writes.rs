//! A precondition of a function that gets a capability that does more than read: named, and with all parameters.

use tool_runtime::{Precondition, ToolError, capability, tool};

/// Pays.
#[capability(effect = external_side_effect)]
trait Bank {
    fn pay(&self, cents: i64) -> i64;
}

/// Pays out.
#[tool(name = "bank__pay", effect = external_side_effect, redact = ["$"], precondition = paid(bank, *cents))]
fn pay(
    bank: &dyn Bank,
    /// How much.
    cents: i64,
) -> Result<i64, ToolError> {
    Ok(bank.pay(cents))
}

/// Pays in.
#[tool(name = "bank__charge", effect = external_side_effect, redact = ["$"], precondition = charged)]
fn charge(
    bank: &dyn Bank,
) -> Result<i64, ToolError> {
    Ok(bank.pay(1))
}

async fn paid(bank: &dyn Bank, cents: i64) -> Result<Precondition, ToolError> {
    Ok(Precondition::of("paid", bank.pay(cents)))
}

async fn charged(bank: &dyn Bank) -> Result<Precondition, ToolError> {
    paid(bank, 1).await
}

fn main() {}
