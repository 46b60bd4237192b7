//! The runs of a tenant that workers have, counted in the transactions that lease, prolong and release one of them.

use jiff::Timestamp;

use crate::store::runs::{RunLease, held};
use crate::store::{Document, StoreError, StoredRun, StoredSlots, Transaction};

fn of(transaction: &Transaction, run: &StoredRun) -> Option<StoredSlots> {
    match transaction.get(&run.slots()) {
        Some(Document::Slots(slots)) => Some(slots.clone()),
        _ => None,
    }
}

/// Enters a run, unless workers have `most` other runs of its tenant. Returns whether it did.
pub(super) fn enter(
    transaction: &mut Transaction,
    run: &StoredRun,
    until: Timestamp,
    most: usize,
) -> Result<bool, StoreError> {
    let (now, mut slots) = (transaction.now(), of(transaction, run).unwrap_or_default());
    // The lease of a worker that died may end here earlier or later than in the run.
    slots.leave(&run.run_id);
    if slots.running(now) >= most {
        return Ok(false);
    }
    slots.enter(&run.run_id, until, now);
    transaction.set(&run.slots(), Document::Slots(slots))?;
    Ok(true)
}

/// Enters the new end of a lease, if the transaction names the slots.
pub(super) fn prolong(transaction: &mut Transaction, lease: &RunLease) -> Result<(), StoreError> {
    let run = held(transaction, lease)?.clone();
    let (Some(holder), Some(mut slots)) = (&run.holder, of(transaction, &run)) else { return Ok(()) };
    slots.enter(&run.run_id, holder.until, transaction.now());
    transaction.set(&run.slots(), Document::Slots(slots))
}

/// Removes a run that is released, if the transaction names the slots.
pub(super) fn leave(transaction: &mut Transaction, run: &StoredRun) -> Result<(), StoreError> {
    let Some(mut slots) = of(transaction, run) else { return Ok(()) };
    slots.leave(&run.run_id);
    if slots.slots.is_empty() {
        transaction.remove(&run.slots())
    } else {
        transaction.set(&run.slots(), Document::Slots(slots))
    }
}
