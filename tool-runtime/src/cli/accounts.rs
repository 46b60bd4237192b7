//! What a run used of its budgets: its own, and those that it shares with other runs of its principal and tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::cli::exit::Failure;
use crate::policy::{Allowance, Holder, RunPolicy, Spend, ToolPolicy};
use crate::store::Store;
use crate::store::accounts::Balance;

/// One budget as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Account {
    holder: Holder,
    /// How long the budget lasts before it begins again. `None` for the budget of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
    /// When the window ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// What there is a limit of, by the key of the policy.
    amounts: BTreeMap<&'static str, Amount>,
}

#[derive(Serialize)]
struct Amount {
    used: f64,
    limit: f64,
}

/// Returns the budgets of a run under a policy, with what was used of them.
pub(super) async fn of_run(
    store: &dyn Store,
    policy: &ToolPolicy,
    spent: Spend,
    party: (Option<&Arc<str>>, Option<&Arc<str>>),
) -> Result<Vec<Account>, Failure> {
    let policy = RunPolicy::new(policy.clone());
    let own = Account { holder: Holder::Run, window: None, until: None, amounts: amounts(spent, policy.budget()) };
    let shared = Balance::of(store, &policy, party, store.now().await?).await?;
    let shared = shared.into_iter().map(|Balance { holder, window, until, used, budget }| Account {
        holder,
        window: Some(window.to_string()),
        until: Some(format!("{until:.0}")),
        amounts: amounts(used, budget),
    });
    Ok(std::iter::once(own).chain(shared).filter(|account| !account.amounts.is_empty()).collect())
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53")]
fn amounts(used: Spend, budget: Allowance) -> BTreeMap<&'static str, Amount> {
    let time = u64::try_from(used.time.as_millis()).unwrap_or(u64::MAX);
    let counted = [
        ("calls", used.calls, budget.calls),
        ("turns", used.turns, budget.turns),
        ("time_ms", time, budget.time_ms),
        ("bytes", used.bytes, budget.bytes),
        ("tokens", used.tokens, budget.tokens),
        ("input_tokens", used.input_tokens, budget.input_tokens),
        ("output_tokens", used.output_tokens, budget.output_tokens),
        ("reasoning_tokens", used.reasoning_tokens, budget.reasoning_tokens),
    ];
    let counted = counted.into_iter().map(|(key, used, limit)| (key, used as f64, limit.map(|limit| limit as f64)));
    counted
        .chain([("cost", used.cost, budget.cost)])
        .filter_map(|(key, used, limit)| Some((key, Amount { used, limit: limit? })))
        .collect()
}

impl Account {
    /// The account in words: `principal, until ..: calls 3 of 10`.
    pub(super) fn told(&self) -> String {
        let holder = match self.holder {
            Holder::Run => "run",
            Holder::Graph => "graph",
            Holder::Principal => "principal",
            Holder::Tenant => "tenant",
        };
        let until = self.until.as_ref().map(|until| format!(", until {until}")).unwrap_or_default();
        let amount = |(key, Amount { used, limit }): (&&str, &Amount)| format!("{key} {used} of {limit}");
        let amounts: Vec<_> = self.amounts.iter().map(amount).collect();
        format!("{holder}{until}: {}", amounts.join(", "))
    }
}
