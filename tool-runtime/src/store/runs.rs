//! Runs that workers share. Each run has at most one worker at a time.

mod slots;
mod update;

use std::sync::Arc;
use std::time::Duration;

use crate::store::lane;
use crate::store::ledger::after;
use crate::store::{Document, Holder, Key, Store, StoreError, StoredRun, Transaction, transact};
use crate::tool::Hash;

pub(crate) use update::{AfterUpdate, Due, RunUpdate, save};

/// The right to write to a run until the lease ends or another owner takes the run. Each write compares the lease with
/// the stored run, in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunLease {
    pub(crate) run_id: Arc<str>,
    pub(crate) owner: Arc<str>,
    pub(crate) epoch: u64,
}

/// Stores a run for the workers.
pub(crate) fn enqueue(transaction: &mut Transaction, run: &StoredRun) -> Result<(), StoreError> {
    let key = Key::run(Arc::clone(&run.run_id));
    transaction.refuse_purged(&run.run_id)?;
    if transaction.get(&key).is_some() {
        return Err(StoreError::Duplicate);
    }
    let run = StoredRun { changed: Some(transaction.now()), ..run.clone() };
    transaction.set(&key, Document::Run(Box::new(run)))
}

/// Stores a run under a lease of its creator.
pub(crate) fn enqueue_held(
    transaction: &mut Transaction,
    run: &StoredRun,
    owner: &Arc<str>,
    lease_duration: Duration,
) -> Result<RunLease, StoreError> {
    let mut run = run.clone();
    (run.epoch, run.due) = (1, Some(transaction.now()));
    run.holder = Some(Holder { owner: Arc::clone(owner), until: after(transaction.now(), lease_duration) });
    enqueue(transaction, &run)?;
    Ok(RunLease { run_id: run.run_id, owner: Arc::clone(owner), epoch: run.epoch })
}

/// The result of [`take`], a request to continue a run whether or not it is due.
#[derive(Debug)]
pub(crate) enum Taking {
    /// The principal has no such conversation in this tenant.
    Unknown,
    /// Another process has the run.
    Held,
    /// The run was held back after a restore from a backup, and was not released.
    HeldBack,
    /// The caller has the run now.
    Taken(RunLease, Box<StoredRun>),
}

/// Leases a run that no process has. The run has to act for this principal and tenant.
pub(crate) fn take(
    transaction: &mut Transaction,
    run_id: &Arc<str>,
    (principal, tenant): (Option<&str>, Option<&str>),
    owner: &Arc<str>,
    lease_duration: Duration,
) -> Result<Taking, StoreError> {
    let (now, key) = (transaction.now(), Key::run(Arc::clone(run_id)));
    let mut run = match transaction.get(&key) {
        Some(Document::Run(run)) if run.tenant.as_deref() == tenant && run.principal.as_deref() == principal => {
            (**run).clone()
        }
        _ => return Ok(Taking::Unknown),
    };
    // A server or an engine continues the run, so it is not a conversation.
    if run.is_served() || run.is_driven() {
        return Ok(Taking::Unknown);
    }
    if run.held_back {
        return Ok(Taking::HeldBack);
    }
    if let Some(holder) = &run.holder
        && now < holder.until
    {
        // A retry by the same owner, because the acknowledgement of the first attempt was lost.
        return Ok(if holder.owner == *owner {
            let held = RunLease { run_id: Arc::clone(run_id), owner: Arc::clone(owner), epoch: run.epoch };
            Taking::Taken(held, Box::new(run))
        } else {
            Taking::Held
        });
    }
    run.epoch += 1;
    run.holder = Some(Holder { owner: Arc::clone(owner), until: after(now, lease_duration) });
    // The run stays due, so that a worker continues it if this process dies.
    run.due = Some(now);
    let held = RunLease { run_id: Arc::clone(run_id), owner: Arc::clone(owner), epoch: run.epoch };
    transaction.set(&key, Document::Run(Box::new(run.clone())))?;
    Ok(Taking::Taken(held, Box::new(run)))
}

/// Makes a run due for a worker, because one of its calls ended outside any worker.
pub(crate) fn wake(transaction: &mut Transaction, run_id: &str) -> Result<(), StoreError> {
    let (key, now) = (Key::run(run_id), transaction.now());
    let Some(Document::Run(run)) = transaction.get(&key) else { return Ok(()) };
    let mut run = run.clone();
    run.wake(now);
    transaction.set(&key, Document::Run(run))
}

/// A worker that takes due runs.
#[derive(Debug, Clone)]
pub(crate) struct Taker {
    pub(crate) owner: Arc<str>,
    pub(crate) lease_duration: Duration,
    /// The version of the worker, if the worker leaves the runs of other versions alone.
    pub(crate) version: Option<Hash>,
    /// How many runs of a tenant workers may have at the same time. `None` without a limit.
    pub(crate) per_tenant: Option<usize>,
}

impl Taker {
    /// Whether the worker continues runs of this version. Every worker continues a run without a version.
    pub(crate) fn takes(&self, version: Option<Hash>) -> bool {
        self.version.is_none() || version.is_none() || self.version == version
    }

    /// Whether the worker continues the runs of a lane.
    pub(crate) fn takes_lane(&self, lane: &str) -> bool {
        self.version.is_none_or(|own| lane::fits_version(lane, own))
    }
}

/// The result of [`lease`], by which a worker takes a due run.
#[derive(Debug)]
pub(crate) enum Leasing {
    /// The worker has the run now.
    Leased(RunLease, Box<StoredRun>),
    /// The run is no longer due, or has another version.
    Gone,
    /// Workers already have the maximum number of runs of the tenant.
    Full,
}

#[cfg(test)]
impl Taker {
    /// Creates a worker without a limit that continues runs of every version.
    pub(crate) fn any(owner: &str, lease_duration: Duration) -> Self {
        Self { owner: owner.into(), lease_duration, version: None, per_tenant: None }
    }
}

#[cfg(test)]
impl Leasing {
    pub(crate) fn leased(self) -> Option<(RunLease, StoredRun)> {
        if let Self::Leased(lease, run) = self { Some((lease, *run)) } else { None }
    }
}

/// Takes a run that is due. With a limit for each tenant, the transaction also locks the [slots](StoredRun::slots) of
/// the tenant, which count its leases. Two workers therefore never take runs of one tenant at the same moment.
pub(crate) fn lease(transaction: &mut Transaction, run_id: &Arc<str>, taker: &Taker) -> Result<Leasing, StoreError> {
    let (now, key) = (transaction.now(), Key::run(Arc::clone(run_id)));
    let Some(Document::Run(run)) = transaction.get(&key) else { return Ok(Leasing::Gone) };
    if run.due().is_none_or(|due| now < due) || !taker.takes(run.version) {
        return Ok(Leasing::Gone);
    }
    let (mut run, until) = (run.clone(), after(now, taker.lease_duration));
    if let Some(most) = taker.per_tenant
        && !slots::enter(transaction, &run, until, most)?
    {
        return Ok(Leasing::Full);
    }
    run.epoch += 1;
    run.holder = Some(Holder { owner: Arc::clone(&taker.owner), until });
    let held = RunLease { run_id: Arc::clone(run_id), owner: Arc::clone(&taker.owner), epoch: run.epoch };
    transaction.set(&key, Document::Run(run.clone()))?;
    Ok(Leasing::Leased(held, run))
}

/// Checks that a worker still holds its run.
pub(crate) fn check(transaction: &Transaction, lease: &RunLease) -> Result<(), StoreError> {
    held(transaction, lease).map(drop)
}

/// Checks in the store that a run is still held under this lease.
pub(crate) async fn confirm(store: &(impl Store + ?Sized), lease: &RunLease) -> Result<(), StoreError> {
    let (keys, lease) = (vec![Key::run_head(Arc::clone(&lease.run_id))], lease.clone());
    transact(store, keys, move |transaction| check(transaction, &lease)).await
}

/// Extends a worker's lease, also in the slots of its tenant if the transaction has locked them.
pub(crate) fn renew(
    transaction: &mut Transaction,
    lease: &RunLease,
    lease_duration: Duration,
) -> Result<(), StoreError> {
    let until = after(transaction.now(), lease_duration);
    write(transaction, lease, |run| {
        // Keep the later end: a clock that jumped back must not shorten the lease.
        let until = run.holder.as_ref().map_or(until, |holder| holder.until.max(until));
        run.holder = Some(Holder { owner: Arc::clone(&lease.owner), until });
    })?;
    slots::prolong(transaction, lease)
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
    run.changed = Some(transaction.now());
    transaction.set(&Key::run(Arc::clone(&lease.run_id)), Document::Run(Box::new(run)))
}
