//! Reserve: the call's share of the budgets, and the loop guard.

use std::time::Duration;

use crate::call::Outcome;
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
    pub(super) carved: Option<Reservation>,
    /// What it books on the accounts of its principal and tenant. `None` if there are none.
    pub(super) bill: Option<Bill>,
    /// How long the tool may take: its own limit, the policy's, and what is left of the run's.
    pub(super) timeout: Option<Duration>,
    pub(super) warning: Option<&'static str>,
}

/// Takes the call's share of the budgets and asks the loop guard.
pub(in crate::runner) fn reserve(open: &OpenCall, permit: Permit) -> Result<Reserved, Stop> {
    let run = open.run();
    let hydrated = permit.hydrated;
    let name = hydrated.entry.spec.name.as_str();
    // A graph that continues is the call that it was. What waits counts once it was taken: until then it waits for
    // another decision.
    let waits = open.claim.is_some();
    let verdict = match open.continued {
        Some(_) => LoopVerdict::Go,
        None if waits => run.loop_guard().foresee(name, &hydrated.effective),
        None => run.loop_guard().observe(name, &hydrated.effective),
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
    let wanted = [hydrated.entry.timeout, run.policy().limits_of(name).runtime].into_iter().flatten().min();
    let bytes = hydrated.entry.result_bytes(run.policy());
    let mut reservation = run.spending().reserve(Spend::call(wanted, bytes)).map_err(exhausted)?;
    let parent = run.parent().map(|parent| parent.spending().carve(bytes));
    let mut carved = parent.transpose().map_err(exhausted)?;
    for reservation in carved.iter_mut().chain([&mut reservation]) {
        reservation.is_used = !waits;
    }
    let timeout = wanted.into_iter().chain(reservation.time()).min();
    let bill = Bill::call(run.accounts().all(), timeout, bytes);
    let bill = if run.parent().is_some() { bill.map(Bill::within_graph) } else { bill };
    Ok(Reserved { hydrated, reservation, carved, bill, timeout, warning })
}

/// A budget has not enough left.
pub(super) fn exhausted(exceeded: BudgetExceeded) -> Stop {
    Stop::new(Outcome::BudgetExceeded).message(format!("The call did not run: {exceeded}."))
}
