//! Runs that workers share: each has at most one worker at a time.

mod progress;

use std::sync::Arc;
use std::time::Duration;

use crate::store::ledger::after;
use crate::store::{Document, Holder, Key, StoreError, StoredRun, Transaction};

pub(crate) use progress::{Due, Next, Progress, save};

/// The right to write to a run, until another owner takes it. Each write is checked against the store's own entry, in
/// the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunLease {
    pub(crate) run_id: Arc<str>,
    pub(crate) owner: Arc<str>,
    pub(crate) epoch: u64,
}

/// Stores a run for the workers.
pub(crate) fn enqueue(transaction: &mut Transaction, run: &StoredRun) -> Result<(), StoreError> {
    let key = Key::run(Arc::clone(&run.run_id));
    if transaction.get(&key).is_some() {
        return Err(StoreError::Duplicate);
    }
    transaction.set(&key, Document::Run(Box::new(run.clone())))
}

/// Stores a run that its creator continues itself.
pub(crate) fn enqueue_held(
    transaction: &mut Transaction,
    run: &StoredRun,
    owner: &Arc<str>,
    by: Duration,
) -> Result<RunLease, StoreError> {
    let mut run = run.clone();
    (run.epoch, run.due) = (1, Some(transaction.now()));
    run.holder = Some(Holder { owner: Arc::clone(owner), until: after(transaction.now(), by) });
    enqueue(transaction, &run)?;
    Ok(RunLease { run_id: run.run_id, owner: Arc::clone(owner), epoch: run.epoch })
}

/// The answer to a request to continue a run, due or not.
#[derive(Debug)]
pub(crate) enum Taking {
    /// The principal has no such conversation in this tenant.
    Unknown,
    /// Another process has it.
    Held,
    /// The run is behind an anchor, and was not released.
    HeldBack,
    /// The caller has it now.
    Taken(RunLease, Box<StoredRun>),
}

/// Takes a run that no process has, for the principal that it acts for.
pub(crate) fn take(
    transaction: &mut Transaction,
    run_id: &Arc<str>,
    (principal, tenant): (Option<&str>, Option<&str>),
    owner: &Arc<str>,
    by: Duration,
) -> Result<Taking, StoreError> {
    let (now, key) = (transaction.now(), Key::run(Arc::clone(run_id)));
    let mut run = match transaction.get(&key) {
        Some(Document::Run(run)) if run.tenant.as_deref() == tenant && run.principal.as_deref() == principal => {
            (**run).clone()
        }
        _ => return Ok(Taking::Unknown),
    };
    // A server or an engine continues it, so it is not a conversation.
    if run.is_served() || run.is_driven() {
        return Ok(Taking::Unknown);
    }
    if run.held_back {
        return Ok(Taking::HeldBack);
    }
    if let Some(holder) = &run.holder
        && now < holder.until
    {
        // A retry by the same owner: the acknowledgement of the first attempt was lost.
        return Ok(if holder.owner == *owner {
            let held = RunLease { run_id: Arc::clone(run_id), owner: Arc::clone(owner), epoch: run.epoch };
            Taking::Taken(held, Box::new(run))
        } else {
            Taking::Held
        });
    }
    run.epoch += 1;
    run.holder = Some(Holder { owner: Arc::clone(owner), until: after(now, by) });
    // Due at once, so that a worker continues if this process dies.
    run.due = Some(now);
    let held = RunLease { run_id: Arc::clone(run_id), owner: Arc::clone(owner), epoch: run.epoch };
    transaction.set(&key, Document::Run(Box::new(run.clone())))?;
    Ok(Taking::Taken(held, Box::new(run)))
}

/// Wakes a worker: a call of the run ended outside any worker.
pub(crate) fn wake(transaction: &mut Transaction, run_id: &str) -> Result<(), StoreError> {
    let (key, now) = (Key::run(run_id), transaction.now());
    let Some(Document::Run(run)) = transaction.get(&key) else { return Ok(()) };
    let mut run = run.clone();
    run.wake(now);
    transaction.set(&key, Document::Run(run))
}

/// Takes a run that is due and has no holder.
pub(crate) fn lease(
    transaction: &mut Transaction,
    run_id: &Arc<str>,
    owner: &Arc<str>,
    lease: Duration,
) -> Result<Option<(RunLease, StoredRun)>, StoreError> {
    let (now, key) = (transaction.now(), Key::run(Arc::clone(run_id)));
    let Some(Document::Run(run)) = transaction.get(&key) else { return Ok(None) };
    if run.due().is_none_or(|due| now < due) {
        return Ok(None);
    }
    let mut run = (**run).clone();
    run.epoch += 1;
    run.holder = Some(Holder { owner: Arc::clone(owner), until: after(now, lease) });
    let held = RunLease { run_id: Arc::clone(run_id), owner: Arc::clone(owner), epoch: run.epoch };
    transaction.set(&key, Document::Run(Box::new(run.clone())))?;
    Ok(Some((held, run)))
}

/// Checks that a worker still holds its run.
pub(crate) fn check(transaction: &Transaction, lease: &RunLease) -> Result<(), StoreError> {
    held(transaction, lease).map(drop)
}

/// Prolongs a worker's lease.
pub(crate) fn renew(transaction: &mut Transaction, lease: &RunLease, by: Duration) -> Result<(), StoreError> {
    let until = after(transaction.now(), by);
    write(transaction, lease, |run| {
        // Keep the later end: a clock that jumped back must not shorten the lease.
        let until = run.holder.as_ref().map_or(until, |holder| holder.until.max(until));
        run.holder = Some(Holder { owner: Arc::clone(&lease.owner), until });
    })
}

fn held<'t>(transaction: &'t Transaction, lease: &RunLease) -> Result<&'t StoredRun, StoreError> {
    match transaction.get(&Key::run(Arc::clone(&lease.run_id))) {
        Some(Document::Run(run))
            if run.epoch == lease.epoch
                && run.holder.as_ref().is_some_and(|holder| {
                    // A worker that was paused past its lease must not write, even if no other worker has taken its run
                    // yet.
                    holder.owner == lease.owner && transaction.now() < holder.until
                }) =>
        {
            Ok(run)
        }
        _ => Err(StoreError::Fenced),
    }
}

fn write(
    transaction: &mut Transaction,
    lease: &RunLease,
    change: impl FnOnce(&mut StoredRun),
) -> Result<(), StoreError> {
    let mut run = held(transaction, lease)?.clone();
    change(&mut run);
    transaction.set(&Key::run(Arc::clone(&lease.run_id)), Document::Run(Box::new(run)))
}
