//! Books the use of budgets on the accounts of a run's principal and tenant, which their other runs share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::call::ToolExecResult;
use crate::media::Media;
use crate::policy::{BudgetExceeded, RunPolicy, Spend};
use crate::runner::report::contained::Contained;
use crate::store::accounts::{self, Account, Bill, Booked};
use crate::store::ledger::Begun;
use crate::store::{Key, Store, StoreError, Transaction, WriteHandle, transact};

/// The accounts of a run, and the turns of its model whose amounts are being booked.
pub(in crate::runner) struct Accounts {
    all: Arc<[Account]>,
    turns: Mutex<VecDeque<PendingCharge>>,
}

/// The maximum number of turns whose writes [`Accounts::overdrawn`] awaits.
const MOST_TURNS: usize = 64;

/// A model's turn whose booking is not acknowledged yet.
struct PendingCharge {
    used: Spend,
    receipt: WriteHandle,
}

/// A turn whose write is awaited now. If the future is dropped before the turn is booked, the turn is awaited again.
struct Awaited<'a> {
    accounts: &'a Accounts,
    used: Spend,
    receipt: WriteHandle,
    is_booked: bool,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if !self.is_booked {
            let receipt = std::mem::replace(&mut self.receipt, WriteHandle::ready(Ok(())));
            self.accounts.turns().push_front(PendingCharge { used: self.used, receipt });
        }
    }
}

impl Accounts {
    pub(in crate::runner) fn of(policy: &RunPolicy, tenant: Option<&Arc<str>>, principal: Option<&Arc<str>>) -> Self {
        Self { all: Account::of(policy, tenant, principal), turns: Mutex::default() }
    }

    pub(in crate::runner) const fn all(&self) -> &Arc<[Account]> {
        &self.all
    }

    /// Books a model's turn without waiting for the store.
    pub(in crate::runner) fn add(&self, store: &Contained<dyn Store>, used: Spend) {
        if self.all.is_empty() {
            return;
        }
        let turn = PendingCharge { used, receipt: self.charge(store, used) };
        let mut turns = self.turns();
        // `overdrawn` may never be called, so turns that the store has acknowledged are removed here, too.
        turns.retain(|turn| !turn.receipt.is_kept());
        // Above the maximum, the oldest turn is no longer awaited. Its write continues.
        if turns.len() >= MOST_TURNS {
            turns.pop_front();
        }
        turns.push_back(turn);
    }

    /// Waits until the turns are booked, and returns an account that is used up.
    pub(in crate::runner) async fn overdrawn(
        &self,
        store: &Contained<dyn Store>,
    ) -> Result<Option<BudgetExceeded>, StoreError> {
        loop {
            // A separate statement, so that the lock is not held during the wait.
            let next = self.turns().pop_front();
            let Some(PendingCharge { used, receipt }) = next else { break };
            let mut turn = Awaited { accounts: self, used, receipt, is_booked: false };
            if (&mut turn.receipt).await.is_err() {
                // The turn is booked again, because a double charge is better than no charge.
                turn.receipt = self.charge(store, used);
                if let Err(error) = (&mut turn.receipt).await {
                    turn.receipt = WriteHandle::ready(Err(StoreError::Lost));
                    return Err(error);
                }
            }
            turn.is_booked = true;
        }
        let accounts = Arc::clone(&self.all);
        let keys = Account::keys(&accounts).collect();
        let change = move |transaction: &mut Transaction| Ok(accounts::exhausted(transaction, &accounts));
        transact(store, keys, change).await
    }

    /// Books a model's turn. Does not check the lease of the run, because the tokens were used in any case.
    fn charge(&self, store: &Contained<dyn Store>, used: Spend) -> WriteHandle {
        let turn = Bill::new(&self.all, used);
        let keys = Account::keys(&turn.accounts).collect();
        let change = move |transaction: &mut Transaction| accounts::charge(transaction, &turn);
        store.update(keys, Box::new(change))
    }

    fn turns(&self) -> MutexGuard<'_, VecDeque<PendingCharge>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The amount that a call may have booked while the store has not acknowledged its beginning.
#[derive(Clone)]
pub(in crate::runner) struct Unacknowledged {
    accounts: Arc<[Account]>,
    booked: Arc<Mutex<Option<Booked>>>,
}

impl Unacknowledged {
    pub(in crate::runner) fn of(bill: &Bill) -> Self {
        Self { accounts: Arc::clone(&bill.accounts), booked: Arc::default() }
    }

    pub(in crate::runner) fn keys(&self) -> impl Iterator<Item = Key> {
        Account::keys(&self.accounts)
    }

    /// Notes the amount that the transaction at the beginning of the call booked.
    pub(in crate::runner) fn note(&self, begun: &Begun) {
        if let Begun::Now { booked, .. } = begun {
            self.booked.lock().unwrap_or_else(PoisonError::into_inner).clone_from(booked);
        }
    }

    /// Refunds the amount of a call that began and did not run. Call it only if the ledger contains the call, because
    /// then the booking was committed.
    pub(in crate::runner) fn give_back(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        booked.map_or(Ok(()), |booked| accounts::settle(transaction, &booked, Spend::default()))
    }
}

/// The amount that a running call has booked on accounts.
pub(in crate::runner) struct Booking {
    booked: Booked,
    started: Instant,
}

/// The amount that an ended call used of its booking.
#[derive(Clone)]
pub(in crate::runner) struct Settled {
    booked: Booked,
    used: Spend,
}

impl Booking {
    pub(in crate::runner) fn new(booked: Booked) -> Self {
        Self { booked, started: Instant::now() }
    }

    /// Returns the amount that a call with this result used; `None` if it had booked nothing.
    pub(in crate::runner) fn settle(held: Option<Box<Self>>, result: &ToolExecResult) -> Option<Settled> {
        held.map(|held| held.settled(size(result)))
    }

    /// Returns the amount that a call with a result of this size used.
    pub(in crate::runner) fn settled(self, bytes: usize) -> Settled {
        let amount = self.booked.amount();
        let time = if self.booked.is_timed() { self.started.elapsed() } else { Duration::ZERO };
        let used = Spend { time, bytes: bytes as u64, ..amount };
        Settled { booked: self.booked, used }
    }
}

/// Returns the size of a result in bytes, with its files.
pub(in crate::runner) fn size(result: &ToolExecResult) -> usize {
    let files: usize = result.media().iter().map(Media::size).sum();
    result.value().map_or(0, |value| value.get().len()).saturating_add(files)
}

impl Settled {
    pub(in crate::runner) fn keys(&self) -> impl Iterator<Item = Key> {
        self.booked.keys()
    }

    /// Books the used amount in place of the reserved one.
    pub(in crate::runner) fn write(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        accounts::settle(transaction, &self.booked, self.used)
    }
}
