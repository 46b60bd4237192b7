//! What a run books: on its own budget, and on the accounts that it shares with other runs of its principal and tenant.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::call::ToolExecResult;
use crate::call::usage::Usage;
use crate::media::Media;
use crate::policy::{Allowance, BudgetExceeded, RunPolicy, Spend};
use crate::runner::{Run, telemetry};
use crate::store::accounts::{self, Account, Bill, Booked};
use crate::store::ledger::{self, Begun};
use crate::store::{Balance, Key, Receipt, StoreError, Transaction};

/// The accounts of a run, and the model's turns on their way to them.
pub(super) struct Accounts {
    all: Arc<[Account]>,
    turns: Mutex<VecDeque<Turn>>,
}

/// The most turns whose receipts are waited for.
const MOST_TURNS: usize = 64;

/// A model's turn that may not be booked yet.
struct Turn {
    used: Spend,
    receipt: Receipt,
}

impl Accounts {
    pub(super) fn of(policy: &RunPolicy, tenant: Option<&Arc<str>>, principal: Option<&Arc<str>>) -> Self {
        Self { all: Account::of(policy, tenant, principal), turns: Mutex::default() }
    }

    pub(super) const fn all(&self) -> &Arc<[Account]> {
        &self.all
    }

    fn turns(&self) -> MutexGuard<'_, VecDeque<Turn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    /// Returns the budgets that the policy sets for the run, with what was used of them: the run's own, and those that it
    /// shares with other runs of its principal and tenant.
    ///
    /// ```
    /// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let policy = ToolPolicy::from_toml("[budgets.run]\ncalls = 10\n[budgets.tenant]\nwindow = \"1d\"\ncalls = 100")?;
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, policy).build()?;
    /// let balances = runner.run(RunOptions::new().tenant("acme")).balances().await?;
    /// assert_eq!((balances[0].holder, balances[0].amounts["calls"]), ("run", (0.0, 10.0)));
    /// assert_eq!((balances[1].holder, balances[1].window.as_deref()), ("tenant", Some("1d")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn balances(&self) -> Result<Vec<Balance>, StoreError> {
        let options = self.options();
        let party = (options.tenant.as_ref(), options.principal.as_ref());
        let store = &self.shared().store_of_application;
        Balance::all(&**store, self.policy(), self.spent(), party).await
    }

    /// Adds what the model itself consumed to what the run, its principal and its tenant have used: tokens by kind, and
    /// cost in the application's own unit. A cost that is negative or not a number counts as 0.
    ///
    /// What principal and tenant have used is in the store. It is written without waiting, and
    /// [`exhausted`](Self::exhausted) waits for it.
    pub fn account(&self, usage: Usage, cost: f64) {
        let used = Spend::turn(usage, cost);
        self.spending().charge(used);
        self.state().charge(usage, cost);
        // Principal and tenant are the same, so that their accounts are charged once.
        if let Some(parent) = self.parent() {
            parent.spending().charge(used);
            parent.state().charge(usage, cost);
        }
        if !self.accounts().all().is_empty() {
            let turn = Turn { used, receipt: self.charge(used) };
            let mut turns = self.accounts().turns();
            // Nobody may ever ask; each is on its way to the store all the same.
            turns.retain(|turn| !turn.receipt.is_kept());
            if turns.len() >= MOST_TURNS {
                turns.pop_front();
            }
            turns.push_back(turn);
        }
    }

    /// Whether a budget is such: one of the run, of the run that calls it, of its principal or of its tenant.
    pub(crate) fn has_budget(&self, is: fn(&Allowance) -> bool) -> bool {
        self.spending().any(is)
            || self.accounts().all().iter().any(|account| is(account.allowance()))
            || self.parent().is_some_and(|parent| parent.spending().any(is))
    }

    /// What the run has spent so far.
    pub(crate) fn spent(&self) -> Spend {
        self.spending().spent().plus(self.state().counted())
    }

    /// Returns the budget, of tokens or of cost, that is used up, so that the model is not asked again. `None` while
    /// there is some left.
    ///
    /// # Errors
    /// The policy has budgets of principals or tenants, and the store cannot be asked for what they have used, or could
    /// not book an earlier turn. Do not ask the model.
    pub async fn exhausted(&self) -> Result<Option<BudgetExceeded>, StoreError> {
        let parent = || self.parent().and_then(|parent| parent.spending().exhausted_for_model());
        if let Some(exceeded) = self.spending().exhausted_for_model().or_else(parent) {
            return Ok(Some(exceeded));
        }
        if self.accounts().all().is_empty() {
            return Ok(None);
        }
        self.overdrawn().await.map_err(|error| telemetry::store_unread(self, error))
    }

    async fn overdrawn(&self) -> Result<Option<BudgetExceeded>, StoreError> {
        loop {
            // Bound first, so that the lock is not held while it waits.
            let next = self.accounts().turns().pop_front();
            let Some(Turn { used, receipt }) = next else { break };
            if receipt.await.is_err() {
                // Booked again: a turn that was paid for twice is better than one that nobody paid for.
                let receipt = self.charge(used);
                if let Err(error) = receipt.await {
                    let receipt = Receipt::ready(Err(StoreError::Lost));
                    self.accounts().turns().push_front(Turn { used, receipt });
                    return Err(error);
                }
            }
        }
        let accounts = Arc::clone(self.accounts().all());
        let keys = Account::keys(&accounts).collect();
        let change = move |transaction: &mut Transaction| Ok(accounts::exhausted(transaction, &accounts));
        self.shared().store.transact(keys, change).await
    }

    /// Books a model's turn. It was used even if the run has another owner meanwhile.
    fn charge(&self, used: Spend) -> Receipt {
        let turn = Bill::new(self.accounts().all(), used);
        let keys = Account::keys(&turn.accounts).collect();
        let change = move |transaction: &mut Transaction| accounts::charge(transaction, &turn);
        self.shared().store.update(keys, Box::new(change))
    }

    /// Books a call that the ledger does not know.
    pub(super) async fn book(&self, bill: Bill) -> Result<Begun, StoreError> {
        let (lease, mut keys) = (self.lease(), self.keys());
        keys.extend(Account::keys(&bill.accounts));
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            Ok(match accounts::reserve(transaction, &bill)? {
                Ok(booked) => Begun::Now(Some(booked)),
                Err(exceeded) => Begun::Exhausted(exceeded),
            })
        };
        self.shared().store.transact(keys, change).await
    }
}

/// What a call may have booked on accounts, while nobody has heard whether it began.
#[derive(Clone)]
pub(super) struct Unheard {
    accounts: Arc<[Account]>,
    booked: Arc<Mutex<Option<Booked>>>,
}

impl Unheard {
    pub(super) fn of(bill: &Bill) -> Self {
        Self { accounts: Arc::clone(&bill.accounts), booked: Arc::default() }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        Account::keys(&self.accounts)
    }

    /// Notes what the transaction that begins the call booked.
    pub(super) fn note(&self, begun: &Begun) {
        if let Begun::Now(booked) = begun {
            self.booked.lock().unwrap_or_else(PoisonError::into_inner).clone_from(booked);
        }
    }

    /// Gives back what a call booked that began and did not run. It is asked only when the ledger has the call, so that
    /// what was noted was kept.
    pub(super) fn give_back(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        booked.map_or(Ok(()), |booked| accounts::settle(transaction, &booked, Spend::default()))
    }
}

/// What a call has booked on accounts, from when it began.
pub(super) struct Held {
    booked: Booked,
    started: Instant,
}

/// What a call that ended used of what it had booked.
#[derive(Clone)]
pub(super) struct Settled {
    booked: Booked,
    used: Spend,
}

impl Held {
    pub(super) fn new(booked: Booked) -> Self {
        Self { booked, started: Instant::now() }
    }

    /// What a call with this result used, if it held anything.
    pub(super) fn settle(held: Option<Box<Self>>, result: &ToolExecResult) -> Option<Settled> {
        held.map(|held| held.settled(size(result)))
    }

    /// With a result of this size.
    pub(super) fn settled(self, bytes: usize) -> Settled {
        let amount = self.booked.amount();
        let time = if self.booked.is_timed() { self.started.elapsed() } else { Duration::ZERO };
        let used = Spend { time, bytes: bytes as u64, ..amount };
        Settled { booked: self.booked, used }
    }
}

/// The size of a result, in bytes, with its files.
pub(super) fn size(result: &ToolExecResult) -> usize {
    let files: usize = result.media().iter().map(Media::size).sum();
    result.value().map_or(0, |value| value.get().len()).saturating_add(files)
}

impl Settled {
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.booked.keys()
    }

    /// Books what was used in place of what was held.
    pub(super) fn write(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        accounts::settle(transaction, &self.booked, self.used)
    }
}
