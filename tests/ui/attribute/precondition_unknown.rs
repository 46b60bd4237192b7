use tool_runtime::{Precondition, ToolError, capability, tool};

/// Reads accounts.
#[capability(effect = read_only)]
trait Accounts {
    fn balance(&self, account: &str) -> i64;
}

/// Pays out.
#[tool(name = "bank__pay", effect = read_only, redact = ["$"], precondition = balance(acount, accounts, bank))]
fn pay(
    accounts: &dyn Accounts,
    /// Which.
    account: String,
) -> Result<i64, ToolError> {
    Ok(accounts.balance(&account))
}

async fn balance(account: &str, accounts: &dyn Accounts) -> Result<Precondition, ToolError> {
    Ok(Precondition::of("balance", accounts.balance(account)))
}

fn main() {}
