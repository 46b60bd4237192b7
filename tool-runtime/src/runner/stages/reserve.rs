//! Reserve: the call's share of the budgets, and the loop guard.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Outcome;
use crate::catalog::Entry;
use crate::hydrate::Hydrated;
use crate::policy::{BudgetExceeded, LoopVerdict, Reservation, Spend};
use crate::runner::ending::Stop;
use crate::runner::open::OpenCall;
use crate::runner::stages::Permit;
use crate::store::accounts::Bill;

const REPEATED: &str = "Note: you made the same call with the same arguments before. A third time it will be refused.";

/// A permitted call with its share of the run's budget. One that waits gives it back unless it is taken.
pub(in crate::runner) struct Reserved {
    pub(super) hydrated: Hydrated,
    pub(super) reservation: Reservation,
    /// The call's share of the budget of the run that calls a graph.
    pub(super) carved: Option<Box<Reservation>>,
    /// What it books on the accounts of its principal and tenant. `None` if there are none.
    pub(super) bill: Option<Box<Bill>>,
    /// How long the tool may take: its own limit, the policy's, and what is left of the run's.
    pub(super) timeout: Option<Duration>,
    /// How long its result may be.
    pub(super) max_bytes: usize,
    pub(super) warning: Option<&'static str>,
}

impl Reserved {
    /// The tool, and how long the call may take.
    pub(in crate::runner) fn tool(&self) -> (&Entry, Option<Duration>) {
        (&self.hydrated.frozen.entry, self.timeout)
    }
}

/// Takes the call's share of the budgets and asks the loop guard.
#[inline]
pub(in crate::runner) fn reserve(open: &OpenCall, permit: Permit) -> Result<Reserved, Stop> {
    let run = open.run();
    let hydrated = permit.hydrated;
    let entry = &hydrated.frozen.entry;
    // A graph that continues is the call that it was. What waits counts once it was taken: until then it waits for
    // another decision.
    let waits = open.claim.is_some();
    let verdict = match open.continued {
        Some(_) => LoopVerdict::Go,
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
    let mut reservation = run.spending().reserve(Spend::call(wanted, bytes)).map_err(exhausted)?;
    let parent = run.parent().map(|parent| parent.spending().carve(bytes));
    let mut carved = parent.transpose().map_err(exhausted)?.map(Box::new);
    for reservation in carved.as_deref_mut().into_iter().chain([&mut reservation]) {
        reservation.is_used = !waits;
    }
    let timeout = wanted.into_iter().chain(reservation.time()).min();
    let bill = Bill::call(run.accounts().all(), timeout, bytes);
    let bill = if run.parent().is_some() { bill.map(Bill::within_graph) } else { bill };
    let bill = bill.map(Box::new);
    Ok(Reserved { hydrated, reservation, carved, bill, timeout, max_bytes: bytes, warning })
}

/// A budget has not enough left.
pub(super) fn exhausted(exceeded: BudgetExceeded) -> Stop {
    Stop::new(Outcome::BudgetExceeded).message(format!("The call did not run: {exceeded}."))
}
