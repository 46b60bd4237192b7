//! The used budgets of a run: its own budget, and the budgets of its principal and its tenant.

use std::collections::BTreeMap;

use serde::Serialize;
use tool_runtime::store::Balance;

/// One budget as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Account {
    holder: &'static str,
    /// The period after which the budget is reset. `None` for the budget of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
    /// The end of the current period.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// The limited amounts, by their keys in the policy.
    amounts: BTreeMap<&'static str, Amount>,
}

#[derive(Serialize)]
struct Amount {
    used: f64,
    limit: f64,
}

impl From<Balance> for Account {
    fn from(balance: Balance) -> Self {
        let amounts = balance.amounts.into_iter().map(|(key, (used, limit))| (key, Amount { used, limit }));
        Self {
            holder: balance.holder,
            window: balance.window,
            until: balance.until.map(|until| format!("{until:.0}")),
            amounts: amounts.collect(),
        }
    }
}

impl Account {
    /// Returns the budget in words: `principal, until ..: calls 3 of 10`.
    pub(super) fn describe(&self) -> String {
        let until = self.until.as_ref().map(|until| format!(", until {until}")).unwrap_or_default();
        let amount = |(key, Amount { used, limit }): (&&str, &Amount)| format!("{key} {used} of {limit}");
        let amounts: Vec<_> = self.amounts.iter().map(amount).collect();
        format!("{}{until}: {}", self.holder, amounts.join(", "))
    }
}
