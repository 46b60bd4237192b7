//! Reserve: takes the call's share of the budgets and checks the loop guard.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Outcome;
use crate::catalog::Entry;
use crate::hydrate::Hydrated;
use crate::policy::{BudgetExceeded, LoopVerdict, Reservation, Spend};
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::Permit;
use crate::store::accounts::Bill;

const REPEATED: &str =
    "Note: you made the same call with the same arguments before. If you repeat it again, it may be refused.";

/// A permitted call with its share of the run's budget. A waiting call gives its share back, unless a decision on it is
/// carried out.
pub(in crate::runner) struct Reserved {
    pub(super) hydrated: Hydrated,
    /// The call's share of the budgets of its run. `None` if there are none.
    pub(super) reservation: Option<Box<Reservation>>,
    /// The call's share of the budget of the parent run, if a graph made the call.
    pub(super) carved: Option<Box<Reservation>>,
    /// The amount to book on the accounts of the principal and the tenant. `None` if they have no accounts.
    pub(super) bill: Option<Box<Bill>>,
    /// The time limit of the call: the shortest of the tool's limit, the policy's limit and the run's remaining time.
    pub(super) timeout: Option<Duration>,
    /// The maximum length of the result.
    pub(super) max_bytes: usize,
    pub(super) warning: Option<&'static str>,
}

impl Reserved {
    /// Sets whether the call uses up its share when it ends, or gives it back.
    pub(super) fn set_used(&mut self, open: &mut OpenCall, is_used: bool) {
        self.reservations().for_each(|reservation| reservation.is_used = is_used);
        open.used = is_used.then_some(0);
    }

    /// Books the actual size of the result in place of the reserved share.
    pub(super) fn settle(&mut self, open: &mut OpenCall, bytes: u64) {
        self.reservations().for_each(|reservation| reservation.settle(bytes));
        open.used = open.used.map(|_| bytes);
    }

    fn reservations(&mut self) -> impl Iterator<Item = &mut Reservation> {
        self.reservation.as_deref_mut().into_iter().chain(self.carved.as_deref_mut())
    }

    /// Returns the tool and the call's time limit.
    pub(in crate::runner) fn tool(&self) -> (&Entry, Option<Duration>) {
        (&self.hydrated.frozen.entry, self.timeout)
    }
}

/// Takes the call's share of the budgets and checks the loop guard.
#[inline]
pub(in crate::runner) fn reserve(open: &mut OpenCall, permit: Permit) -> Result<Reserved, Stop> {
    let run = open.run();
    let hydrated = permit.hydrated;
    let entry = &hydrated.frozen.entry;
    // A graph that continues is not a new call. A waiting call is counted when it is claimed, because until then its
    // decision can be refused.
    let waits = open.claim.is_some();
    // A call that is taken over was counted when it began. It reserves a share while it runs, but uses up none of it.
    let is_counted = open.is_taken_over();
    let verdict = match open.continued {
        Some(_) => LoopVerdict::Go,
        None if is_counted => LoopVerdict::Go,
        // `foresee` does not count the call.
        None if waits => run.loop_guard().foresee(&*hydrated.frozen),
        None => run.loop_guard().observe(Arc::clone(&hydrated.frozen) as _),
    };
    let warning = match verdict {
        LoopVerdict::Go => None,
        LoopVerdict::Warn(_) => Some(REPEATED),
        LoopVerdict::Stop(_) => {
            let message =
                "You made the same call with the same arguments again and again. It did not run: do something else.";
            return Err(Stop::new(Outcome::BudgetExceeded).message(message));
        }
    };
    let limits = hydrated.frozen.limits;
    let wanted = [entry.timeout, limits.runtime].into_iter().flatten().min();
    let bytes = entry.result_bytes(&limits);
    let share = |held: Result<Option<Reservation>, BudgetExceeded>| match held {
        Err(_) if is_counted => Ok(None),
        held => held.map(|held| held.map(Box::new)).map_err(exhausted),
    };
    let held = run.spending().reserve(Spend::call(wanted, bytes));
    let is_exhausted = held.is_err();
    let reservation = share(held)?;
    // A call that a graph makes also spends the budgets of the parent run.
    let carved = match run.parent() {
        Some(parent) => share(parent.spending().carve(bytes))?,
        None => None,
    };
    let left = match &reservation {
        Some(reservation) => reservation.time(),
        None => is_exhausted.then_some(run.shared().lease),
    };
    let timeout = wanted.into_iter().chain(left).min();
    let bill = Bill::call(run.accounts().all(), timeout, bytes);
    // The bill of the graph's own call contains its time, so the bill of an inner call contains none.
    let bill = if run.parent().is_some() { bill.map(Bill::within_graph) } else { bill };
    let bill = bill.map(Box::new);
    let mut reserved = Reserved { hydrated, reservation, carved, bill, timeout, max_bytes: bytes, warning };
    reserved.set_used(open, !waits && !is_counted);
    Ok(reserved)
}

/// Returns the stop for a budget that is used up.
#[cold]
pub(super) fn exhausted(exceeded: BudgetExceeded) -> Stop {
    Stop::new(Outcome::BudgetExceeded).message(format!("The call did not run: {exceeded}."))
}
