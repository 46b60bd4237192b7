//! Accounts: the budget that a principal or a tenant has used, over all processes that share a store.
//!
//! The largest amount that a call can use is booked before the call begins and corrected when it ends. Concurrent calls
//! therefore never exceed a limit together. If a process dies, its bookings stay until the account's window ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::policy::{Allowance, BudgetExceeded, Holder, RunPolicy, Spend, Window};
use crate::store::{Document, Key, Store, StoreError, StoredAccount, Transaction};
use crate::text::random_id;

/// An account on which the calls of a run are booked, with its limits.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    key: Key,
    holder: Holder,
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    window: Window,
    allowance: Allowance,
}

/// A budget that a policy sets, with the amounts used. [`Run::balances`](crate::Run::balances) returns the balances of
/// a run.
///
/// ```
/// use tool_runtime::{ToolCatalog, ToolError, ToolPolicy, testing, tool};
///
/// # /// Rolls a die.
/// # #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// # fn roll() -> Result<u32, ToolError> { Ok(4) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::from_toml(r#"
///     allowed_tools = ["games__roll"]
///
///     [budgets.run]
///     calls = 20
/// "#)?;
/// let harness = testing::harness(ToolCatalog::builder().tool::<roll>().build()?).policy(policy);
/// harness.call("games__roll", serde_json::json!({})).await;
/// let balances = harness.run().balances().await?;
/// assert_eq!((balances[0].holder, balances[0].amounts["calls"]), ("run", (1.0, 20.0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Balance {
    /// The holder of the budget: `run`, `principal` or `tenant`.
    pub holder: &'static str,
    /// The length of the budget's window, as the policy writes it. `None` for the budget of a run, which has no window.
    pub window: Option<String>,
    /// When the current window ends. `None` without a window.
    pub until: Option<Timestamp>,
    /// The amount used and the limit, for each limit that the policy sets, by its key in the policy: `calls`, `tokens`,
    /// `cost` and others.
    pub amounts: BTreeMap<&'static str, (f64, f64)>,
}

impl Balance {
    /// Returns the budgets of a run that has used `spent`: its own budget, and the budgets that it shares with other
    /// runs of its tenant and principal. Budgets without a limit are left out.
    pub(crate) async fn all(
        store: &dyn Store,
        policy: &RunPolicy,
        spent: Spend,
        (tenant, principal): (Option<&Arc<str>>, Option<&Arc<str>>),
    ) -> Result<Vec<Self>, StoreError> {
        let own = Self { holder: "run", window: None, until: None, amounts: amounts(spent, policy.budget()) };
        let accounts = Account::of(policy, tenant, principal);
        let keys: Vec<_> = Account::keys(&accounts).collect();
        let documents = store.read(&keys).await?;
        let transaction = Transaction::new(store.now().await?, keys.into_iter().zip(documents));
        let shared = accounts.iter().map(|account| {
            let StoredAccount { until, booked, .. } = account.now(&transaction);
            Self {
                holder: if account.holder == Holder::Tenant { "tenant" } else { "principal" },
                window: Some(account.window.to_string()),
                until: Some(until),
                amounts: amounts(booked, account.allowance),
            }
        });
        Ok(std::iter::once(own).chain(shared).filter(|balance| !balance.amounts.is_empty()).collect())
    }
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53")]
fn amounts(used: Spend, budget: Allowance) -> BTreeMap<&'static str, (f64, f64)> {
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
        .filter_map(|(key, used, limit)| Some((key, (used, limit?))))
        .collect()
}

/// The amounts that one call, or one turn of a model, is about to book.
#[derive(Debug, Clone)]
pub(crate) struct Bill {
    pub(crate) accounts: Arc<[Account]>,
    amount: Spend,
    mark: u64,
    /// Whether the bill is for a call inside a graph (an agent or a script that runs as a tool). The graph's own
    /// booking contains the time of that call.
    within_graph: bool,
}

/// The amounts that one call has booked, and the window of each account that holds them.
#[derive(Debug, Clone)]
pub(crate) struct Booked {
    bill: Bill,
    windows: Vec<Timestamp>,
}

impl Account {
    /// Returns the accounts on which the calls of a run are booked.
    pub(crate) fn of(policy: &RunPolicy, tenant: Option<&Arc<str>>, principal: Option<&Arc<str>>) -> Arc<[Self]> {
        let account = |(holder, window, allowance)| {
            let (tenant, principal) = (tenant.cloned(), principal.filter(|_| holder == Holder::Principal).cloned());
            let key = Key::account(holder, tenant.as_deref(), principal.as_deref(), window);
            Self { key, holder, tenant, principal, window, allowance }
        };
        let shared = policy.shared();
        // Most runs share no account; collecting into an `Arc` would allocate even for an empty slice.
        if shared.is_empty() { Arc::default() } else { shared.into_iter().map(account).collect() }
    }

    /// Returns the account's limits.
    pub(crate) const fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Returns the keys of accounts.
    pub(crate) fn keys(accounts: &[Self]) -> impl Iterator<Item = Key> {
        accounts.iter().map(|account| account.key.clone())
    }

    /// Returns the current account: the stored one, or an empty one if the window of the stored one is over. If the
    /// clock jumped back to a time before the stored window, the stored account is still used, so that the budget of a
    /// window is not granted twice.
    fn now(&self, transaction: &Transaction) -> StoredAccount {
        let from = self.window.start(transaction.now());
        match transaction.get(&self.key) {
            Some(Document::Account(stored)) if from <= stored.from => (**stored).clone(),
            _ => StoredAccount {
                tenant: self.tenant.clone(),
                principal: self.principal.clone(),
                holder: self.holder,
                from,
                until: from.saturating_add(self.window.length()).unwrap_or(Timestamp::MAX),
                booked: Spend::default(),
                mark: 0,
            },
        }
    }
}

/// Reserves the largest amount that a call may use. `Ok(Ok(booked))` if every account has enough left. Otherwise
/// `Ok(Err(exceeded))`, and nothing is reserved.
pub(crate) fn reserve(
    transaction: &mut Transaction,
    bill: &Bill,
) -> Result<Result<Booked, BudgetExceeded>, StoreError> {
    let now: Vec<_> = bill.accounts.iter().map(|account| account.now(transaction)).collect();
    for (account, stored) in bill.accounts.iter().zip(&now) {
        let allowance = account.allowance.for_call();
        let time_ms = allowance.time_ms.filter(|_| !bill.within_graph);
        if let Some(amount) = (Allowance { time_ms, ..allowance }).refuses(stored.booked, bill.amount) {
            return Ok(Err(BudgetExceeded::new(account.holder, amount, Some(stored.until))));
        }
    }
    let windows = now.iter().map(|stored| stored.from).collect();
    for (account, stored) in bill.accounts.iter().zip(now) {
        book(transaction, account, stored, bill.mark, |booked| booked.plus(bill.amount))?;
    }
    Ok(Ok(Booked { bill: bill.clone(), windows }))
}

/// Replaces the reservation of a call with the amount that the call used. An account whose window has ended is not
/// changed.
pub(crate) fn settle(transaction: &mut Transaction, booked: &Booked, used: Spend) -> Result<(), StoreError> {
    for (account, from) in booked.bill.accounts.iter().zip(&booked.windows) {
        let stored = match transaction.get(&account.key) {
            Some(Document::Account(stored)) if stored.from == *from => (**stored).clone(),
            _ => continue,
        };
        let mark = booked.bill.mark.wrapping_add(1);
        book(transaction, account, stored, mark, |spend| spend.minus(booked.bill.amount).plus(used))?;
    }
    Ok(())
}

/// Books an amount without a reservation, such as the tokens of a model's turn.
pub(crate) fn charge(transaction: &mut Transaction, turn: &Bill) -> Result<(), StoreError> {
    for account in &*turn.accounts {
        let stored = account.now(transaction);
        book(transaction, account, stored, turn.mark, |booked| booked.plus(turn.amount))?;
    }
    Ok(())
}

/// Returns the budget that a model's turn would exceed. `None` if no budget is exceeded.
pub(crate) fn exhausted(transaction: &Transaction, accounts: &[Account]) -> Option<BudgetExceeded> {
    accounts.iter().find_map(|account| {
        let stored = account.now(transaction);
        let amount = account.allowance.for_model().refuses(stored.booked, Spend::default())?;
        Some(BudgetExceeded::new(account.holder, amount, Some(stored.until)))
    })
}

fn book(
    transaction: &mut Transaction,
    account: &Account,
    mut stored: StoredAccount,
    mark: u64,
    change: impl FnOnce(Spend) -> Spend,
) -> Result<(), StoreError> {
    (stored.booked, stored.mark) = (change(stored.booked), mark);
    transaction.set(&account.key, Document::Account(Box::new(stored)))
}

impl Bill {
    /// Creates the bill of one call that may take up to `time`, with a result of up to `bytes`. `None` if there are no
    /// accounts.
    pub(crate) fn call(accounts: &Arc<[Account]>, time: Option<Duration>, bytes: usize) -> Option<Self> {
        // A call without a time limit reserves all time that is left. If no account limits the time, it reserves none.
        let is_limited = accounts.iter().any(|account| account.allowance.time_ms.is_some());
        let time = time.or((!is_limited).then_some(Duration::ZERO));
        (!accounts.is_empty()).then(|| Self::new(accounts, Spend::call(time, bytes)))
    }

    /// Creates a bill of any amount.
    pub(crate) fn new(accounts: &Arc<[Account]>, amount: Spend) -> Self {
        Self { accounts: Arc::clone(accounts), amount, mark: random_id().as_u64_pair().0, within_graph: false }
    }

    /// Marks the bill as that of a call inside a graph, and books no time for the call.
    pub(crate) const fn within_graph(mut self) -> Self {
        (self.amount.time, self.within_graph) = (Duration::ZERO, true);
        self
    }
}

impl Booked {
    /// Whether the call's own time is booked.
    pub(crate) const fn is_timed(&self) -> bool {
        !self.bill.within_graph
    }

    /// Returns the keys of the accounts.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        Account::keys(&self.bill.accounts)
    }

    /// Returns the booked amount.
    pub(crate) const fn amount(&self) -> Spend {
        self.bill.amount
    }
}
