//! Counts the leases of workers on the runs of a tenant. The transactions that lease, renew and release a run update
//! the count.

use jiff::Timestamp;

use crate::store::runs::{RunLease, held};
use crate::store::{Document, StoreError, StoredRun, StoredSlots, Transaction};

fn of(transaction: &Transaction, run: &StoredRun) -> Option<StoredSlots> {
    match transaction.get(&run.slots()) {
        Some(Document::Slots(slots)) => Some(slots.clone()),
        _ => None,
    }
}

/// Adds a run, unless workers already have `most` other runs of its tenant. Returns whether it was added.
pub(super) fn enter(
    transaction: &mut Transaction,
    run: &StoredRun,
    until: Timestamp,
    most: usize,
) -> Result<bool, StoreError> {
    let (now, mut slots) = (transaction.now(), of(transaction, run).unwrap_or_default());
    // If a worker died, its lease may end earlier or later in the slots than in the run.
    slots.leave(&run.run_id, now);
    if slots.slots.len() >= most {
        return Ok(false);
    }
    slots.enter(&run.run_id, until, now);
    transaction.set(&run.slots(), Document::Slots(slots))?;
    Ok(true)
}

/// Writes the new end of a lease, if the transaction has locked the slots.
pub(super) fn prolong(transaction: &mut Transaction, lease: &RunLease) -> Result<(), StoreError> {
    let run = held(transaction, lease)?.clone();
    let (Some(holder), Some(mut slots)) = (&run.holder, of(transaction, &run)) else { return Ok(()) };
    slots.enter(&run.run_id, holder.until, transaction.now());
    transaction.set(&run.slots(), Document::Slots(slots))
}

/// Removes a released run, if the transaction has locked the slots.
pub(super) fn leave(transaction: &mut Transaction, run: &StoredRun) -> Result<(), StoreError> {
    let Some(mut slots) = of(transaction, run) else { return Ok(()) };
    slots.leave(&run.run_id, transaction.now());
    if slots.slots.is_empty() {
        transaction.remove(&run.slots())
    } else {
        transaction.set(&run.slots(), Document::Slots(slots))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A worker died with one run of a tenant, and its lease has ended. The release of another run wakes no worker.
    #[test]
    fn a_release_removes_runs_whose_lease_has_ended() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let [dead, other, third] = ["dead", "other", "third"].map(|id| StoredRun::new(id, "{}"));
        let mut slots = StoredSlots::default();
        for (run, until) in [(&dead, at(10)), (&other, at(40)), (&third, at(50))] {
            slots.enter(&run.run_id, until, at(0));
        }
        for (run, left) in [(&other, Some(vec![Arc::clone(&third.run_id)])), (&third, None)] {
            let mut transaction =
                Transaction::over(at(20), [(run.slots(), Some(Document::Slots(std::mem::take(&mut slots))))]);
            leave(&mut transaction, run).unwrap();
            assert!(!transaction.wakes());
            let after = of(&transaction, run);
            let ids = |slots: &StoredSlots| slots.slots.iter().map(|slot| Arc::clone(&slot.run_id)).collect::<Vec<_>>();
            assert_eq!(after.as_ref().map(ids), left);
            slots = after.unwrap_or_default();
        }
    }
}
