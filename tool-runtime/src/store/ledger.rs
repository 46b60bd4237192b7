//! The ledger: what began, and what was seen to end. An effect is written here before it begins.

mod closing;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{Cause, ToolInvocationRecord};
use crate::policy::BudgetExceeded;
use crate::store::accounts::{self, Account, Bill, Booked};
use crate::store::grants;
use crate::store::runs::{self, RunLease};
use crate::store::{Document, Key, PendingCall, StoreError, Transaction};

pub(crate) use closing::{close_left, close_orphan, close_unseen, is_abandoned, is_left};

/// A call in the ledger. It began; whether it ended is known once it is finished.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LedgerEntry {
    /// Who runs it: one attempt of one process.
    pub(crate) owner: Arc<str>,
    /// How often it was begun or taken over.
    pub(crate) epoch: u64,
    /// When the owner counts as gone.
    pub(crate) until: Timestamp,
    /// How often a worker had taken the run when the call began. `None` if no worker had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<u64>,
    /// Its run is continued by nobody once the process is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ends_with_process: bool,
    /// The tool may reconcile or repeat the call, so only the gate closes it while its run can continue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) recoverable: bool,
    /// The call as it began, while it is open, so that another process can continue it. `None` if it was not approved
    /// and its tool neither reconciles nor repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<Box<PendingCall>>,
    /// The run in which its graph works, while it is open. `None` for any other tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) graph: Option<Arc<str>>,
    /// Its record, which is in the chain too; until it is finished, the one that it gets if nobody sees its end.
    pub(crate) record: Box<ToolInvocationRecord>,
}

impl LedgerEntry {
    /// A call that has its record.
    const fn closed(owner: Arc<str>, epoch: u64, until: Timestamp, record: Box<ToolInvocationRecord>) -> Self {
        let (worker, waited, graph) = (None, None, None);
        Self { owner, epoch, until, worker, ends_with_process: false, recoverable: false, waited, graph, record }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.record.ended_at.is_some()
    }

    /// Whether no other process continues its run once this one is gone.
    #[cfg(feature = "mcp-server")]
    pub(crate) const fn ends_with_process(&self) -> bool {
        self.ends_with_process
    }

    /// The record that it gets if nobody sees its end. `None` once it is finished.
    pub(crate) fn unseen(&self) -> Option<&ToolInvocationRecord> {
        (!self.is_finished()).then_some(&*self.record)
    }

    /// Whether the process that began it can no longer write: its time is over, or the run has another worker since.
    fn is_deserted(&self, now: Timestamp, worker: Option<u64>) -> bool {
        now >= self.until || self.worker.zip(worker).is_some_and(|(before, now)| before < now)
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        (!self.is_finished()).then_some(self.until)
    }
}

/// What is written before an effect begins.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    /// The ledger's key.
    pub(crate) key: Key,
    /// This attempt.
    pub(crate) owner: Arc<str>,
    /// How long the attempt counts as alive without being renewed.
    pub(crate) lease: Duration,
    /// The record of the call if nobody sees its end.
    pub(crate) unseen: ToolInvocationRecord,
    /// The grant that lets it run, of which it takes one use. `None` if the policy does, or a person.
    pub(crate) grant: Option<Key>,
    /// The call may be run again when nobody saw its end.
    pub(crate) repeatable: bool,
    /// The tool may look up the outcome of the call if its end was not recorded.
    pub(crate) reconciles: bool,
    /// How often a worker took the run; `None` if no worker has it.
    pub(crate) worker: Option<u64>,
    /// No process continues the run once this process is gone.
    pub(crate) ends_with_process: bool,
    /// The call as it begins, for a process that takes it over. `None` if it was not approved and its tool neither
    /// reconciles nor repeats it.
    pub(crate) waited: Option<Box<PendingCall>>,
    /// The run in which its graph works if it has none yet. `None` for any other tool.
    pub(crate) graph: Option<Arc<str>>,
    /// What it books on the accounts of its principal and tenant. `None` if there are none.
    pub(crate) bill: Option<Bill>,
    /// Where it may wait because another process asks for an approval. `None` if it was approved, or no other process can
    /// have had it.
    pub(crate) waits: Option<Key>,
}

impl Intent {
    /// The keys that have to be locked in addition to the run's.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let accounts = self.bill.iter().flat_map(|bill| Account::keys(&bill.accounts));
        let waits = self.waits.iter().flat_map(|key| [key.clone(), Key::replaced(&self.key)]);
        std::iter::once(self.key.clone()).chain(self.grant.clone()).chain(waits).chain(accounts)
    }
}

/// What the ledger says to an intent.
#[derive(Debug, Clone)]
pub(crate) enum Begun {
    /// It may begin, and has booked this. Its graph works in this run.
    Now(Option<Booked>, Option<Arc<str>>),
    /// It has ended, with this record.
    Finished(Box<ToolInvocationRecord>),
    /// It runs elsewhere.
    Elsewhere,
    /// It began, and its owner is gone. This attempt owns it now, to find out what became of it.
    Unseen,
    /// The grant that was to let it run is gone or used up. It did not begin.
    Ungranted,
    /// An account has not enough left. It never began.
    Exhausted(BudgetExceeded),
    /// It waits for a person, whom another process has asked.
    Waits(Box<PendingCall>),
    /// A person let it run with other arguments.
    Replaced,
}

/// Writes an intent, unless the call has begun before.
pub(crate) fn begin(transaction: &mut Transaction, intent: &Intent) -> Result<Begun, StoreError> {
    let until = after(transaction.now(), intent.lease);
    if let Some(grant) = &intent.grant
        && transaction.get(&intent.key).is_none()
        && !grants::holds(transaction, grant)
    {
        return Ok(Begun::Ungranted);
    }
    if let Some(key) = &intent.waits
        && transaction.get(&intent.key).is_none()
        && let Some(Document::Waiting(waiting)) = transaction.get(key)
        && waiting.idempotency_key.is_some_and(|key| **intent.key.id() == *key.to_string())
    {
        return Ok(Begun::Waits(Box::new(waiting.call.clone())));
    }
    if intent.waits.is_some() && transaction.get(&Key::replaced(&intent.key)).is_some() {
        return Ok(Begun::Replaced);
    }
    let earlier = match transaction.get(&intent.key) {
        Some(Document::Call(entry)) => Some(&**entry),
        _ => None,
    };
    // A clock that jumped back shortens no lease.
    let until = earlier.filter(|entry| entry.owner == intent.owner).map_or(until, |entry| until.max(entry.until));
    let (epoch, anew) = match earlier {
        None => (1, true),
        Some(entry) if entry.is_finished() => return Ok(Begun::Finished(entry.record.clone())),
        // The same attempt asks again: the answer to its first question was lost.
        Some(entry) if entry.owner == intent.owner => (entry.epoch, true),
        Some(entry) if !entry.is_deserted(transaction.now(), intent.worker) => return Ok(Begun::Elsewhere),
        Some(entry) => (entry.epoch + 1, intent.repeatable),
    };
    let is_first = earlier.is_none();
    let waited = intent.waited.clone().or_else(|| earlier.and_then(|entry| entry.waited.clone()));
    // An earlier attempt may have had effects in its run. The id would be another one if the key of the digests was lost.
    let graph = earlier.and_then(|entry| entry.graph.clone()).or_else(|| intent.graph.clone());
    let bill = intent.bill.as_ref().filter(|_| anew);
    let begun = match bill.map(|bill| accounts::reserve(transaction, bill)).transpose()? {
        Some(Ok(booked)) => Begun::Now(Some(booked), graph.clone()),
        None if anew => Begun::Now(None, graph.clone()),
        Some(Err(exceeded)) if is_first => return Ok(Begun::Exhausted(exceeded)),
        // What began before is not reported as refused.
        Some(Err(_)) | None => Begun::Unseen,
    };
    if let Some(grant) = intent.grant.as_ref().filter(|_| is_first) {
        grants::take(transaction, grant)?;
    }
    let record = Box::new(intent.unseen.clone());
    let (owner, worker, ends_with_process) = (Arc::clone(&intent.owner), intent.worker, intent.ends_with_process);
    let recoverable = intent.repeatable || intent.reconciles;
    let entry = LedgerEntry { owner, epoch, until, worker, ends_with_process, recoverable, waited, graph, record };
    transaction.set(&intent.key, Document::Call(Box::new(entry)))?;
    Ok(begun)
}

/// The entry of a call that is about to wait, if a process that asked nobody has begun it.
pub(crate) fn begun<'t>(transaction: &'t Transaction, key: &Key) -> Option<&'t LedgerEntry> {
    if let Some(Document::Call(entry)) = transaction.get(key) { Some(entry) } else { None }
}

/// Keeps how a call ended that waited and did not begin, so that no other process begins it.
pub(crate) fn ended(transaction: &mut Transaction, key: &Key, record: &ToolInvocationRecord) -> Result<(), StoreError> {
    if transaction.get(key).is_some() {
        return Ok(());
    }
    let (until, record) = (transaction.now(), Box::new(record.clone()));
    let entry = LedgerEntry::closed("".into(), 1, until, record);
    transaction.set(key, Document::Call(Box::new(entry)))
}

/// Prolongs the lease of an attempt.
pub(crate) fn renew(transaction: &mut Transaction, key: &Key, owner: &str, lease: Duration) -> Result<(), StoreError> {
    let until = after(transaction.now(), lease);
    match transaction.get(key) {
        Some(Document::Call(entry)) if *entry.owner == *owner && !entry.is_finished() => {
            let mut entry = entry.clone();
            // A clock that jumped back shortens no lease.
            entry.until = entry.until.max(until);
            transaction.set(key, Document::Call(entry))
        }
        _ => Err(StoreError::Fenced),
    }
}

/// Closes a call that this attempt began, or began to begin, with its record.
///
/// An attempt that took the call over from another one and did not run says nothing about what that one did: then the
/// record says that nobody saw its end. Returns whether the ledger knew the attempt.
pub(crate) fn finish(
    transaction: &mut Transaction,
    key: &Key,
    owner: &Arc<str>,
    record: &ToolInvocationRecord,
) -> Result<bool, StoreError> {
    let until = transaction.now();
    let mut record = record.clone();
    let (epoch, is_known) = match transaction.get(key) {
        // The intent may still be on its way: it must find that the call has ended.
        None => (1, false),
        Some(Document::Call(entry)) if entry.owner == *owner => {
            if entry.is_finished() {
                // Written before; only the answer was lost.
                return Ok(true);
            }
            if entry.epoch > 1 && !record.executed && record.cause != Some(Cause::Prevented) {
                record = ToolInvocationRecord { ended_at: Some(until), ..(*entry.record).clone() };
            }
            (entry.epoch, true)
        }
        Some(_) => return Err(StoreError::Fenced),
    };
    let entry = LedgerEntry::closed(Arc::clone(owner), epoch, until, Box::new(record.clone()));
    transaction.set(key, Document::Call(Box::new(entry)))?;
    transaction.append(record)?;
    Ok(is_known)
}

/// Whether this attempt began a call, and nobody has closed it.
pub(crate) fn has_begun(transaction: &Transaction, key: &Key, owner: &str) -> bool {
    matches!(transaction.get(key), Some(Document::Call(entry)) if *entry.owner == *owner && !entry.is_finished())
}

/// Takes an attempt back that had no effect.
pub(crate) fn withdraw(transaction: &mut Transaction, key: &Key, owner: &str) -> Result<(), StoreError> {
    match transaction.get(key) {
        Some(Document::Call(entry)) if *entry.owner == *owner && !entry.is_finished() => transaction.remove(key),
        _ => Err(StoreError::Fenced),
    }
}

/// A call of a run that workers share ended without a worker: one has to look.
pub(crate) fn ended_outside(
    transaction: &mut Transaction,
    run_id: &str,
    held: Option<&RunLease>,
) -> Result<(), StoreError> {
    if held.is_some() { Ok(()) } else { runs::wake(transaction, run_id) }
}

/// Checks that a worker still has its run, if the run is held by one.
pub(crate) fn check(transaction: &Transaction, held: Option<&RunLease>) -> Result<(), StoreError> {
    held.map_or(Ok(()), |lease| runs::check(transaction, lease))
}

pub(in crate::store) fn after(now: Timestamp, duration: Duration) -> Timestamp {
    now.saturating_add(duration).unwrap_or(Timestamp::MAX)
}
