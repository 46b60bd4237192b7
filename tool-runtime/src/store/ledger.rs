//! The ledger: an entry for each call that began. The entry is written before the effect of the call begins, and the
//! end of the call is added to it later.

mod closing;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Cause, ToolInvocationRecord};
use crate::policy::{BudgetExceeded, NoticeTerms};
use crate::store::accounts::{self, Account, Bill, Booked};
use crate::store::effects::{self, Blocked, EffectClaim, OnceClaim};
use crate::store::grants;
use crate::store::notices;
use crate::store::runs::{self, RunLease};
use crate::store::{Document, Key, LedgerEntry, PendingCall, StoreError, Transaction};
use crate::tool::Hash;

pub(crate) use closing::{
    close_abandoned, close_left, close_orphan, has_graph, is_abandoned, is_left, is_orphan, keys_of, leave_or_close,
    settle,
};

/// The intent to run a call, which an attempt writes before the effect of the call begins.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    /// The key of the call in the ledger.
    pub(crate) key: Key,
    /// The id of this attempt.
    pub(crate) owner: Arc<str>,
    /// How long the attempt owns the call without a renewal.
    pub(crate) lease: Duration,
    /// The record to write if the end of the call is lost.
    pub(crate) lost_record: ToolInvocationRecord,
    /// The grant that allows the call. The first attempt consumes one of its uses. `None` if the policy or a person
    /// allowed the call.
    pub(crate) grant: Option<Key>,
    /// Whether the call may run again if its end was not recorded.
    pub(crate) repeatable: bool,
    /// Whether the tool can reconcile the call if its end was not recorded.
    pub(crate) reconciles: bool,
    /// The epoch of the worker's lease on the run. `None` without a lease.
    pub(crate) worker: Option<u64>,
    /// Whether no other process continues the run after this process has died.
    pub(crate) ends_with_process: bool,
    /// The call in the form of a suspended call, for a process that takes the call over. `None` if the ledger already
    /// has this form, or if the call was not approved and its tool neither reconciles nor repeats it.
    pub(crate) waited: Option<Box<PendingCall>>,
    /// For a call of a graph (an agent or a script that runs as a tool), the id of the run in which the graph works. An
    /// id that an earlier attempt chose takes precedence. `None` for any other tool.
    pub(crate) graph: Option<Arc<str>>,
    /// The amounts to book on the accounts of the run's principal and tenant. `None` if there are no accounts.
    pub(crate) bill: Option<Bill>,
    /// The key under which another process may have suspended the call for an approval, with the digest of the
    /// arguments. `None` if the call was approved, or no other process can have the call.
    pub(crate) waits: Option<(Key, Hash)>,
    /// The effect of the call. `None` if the call does not exclude other calls with the same effect.
    pub(crate) effect: Option<EffectClaim>,
    /// The contents of the notice about an unknown outcome. `None` if no notice is sent.
    pub(crate) notices: Option<Arc<NoticeTerms>>,
}

impl Intent {
    /// Returns the keys to lock in addition to the key of the run.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let accounts = self.bill.iter().flat_map(|bill| Account::keys(&bill.accounts));
        let waits = self.waits.iter().flat_map(|(key, _)| [key.clone(), Key::replaced(&self.key)]);
        let effect = self.effect.iter().flat_map(EffectClaim::keys);
        std::iter::once(self.key.clone()).chain(self.grant.clone()).chain(waits).chain(accounts).chain(effect)
    }
}

/// The ledger's answer to an intent.
#[derive(Debug, Clone)]
pub(crate) enum Begun {
    /// The call may begin, with these bookings. `graph` is the id of the run in which a graph works. `is_again` is
    /// `true` if an earlier attempt might have had the effect.
    Now { booked: Option<Booked>, graph: Option<Arc<str>>, is_again: bool },
    /// The call has ended, with this record.
    Finished(Box<ToolInvocationRecord>),
    /// Another process runs the call.
    Elsewhere,
    /// The call began, and its owner's lease ended. This attempt owns it now and reconciles it.
    Abandoned,
    /// The grant that allowed the call was revoked or used up, or has expired. The call did not begin.
    Ungranted,
    /// An account of the principal or the tenant has too little left. The call has never begun.
    Exhausted(BudgetExceeded),
    /// Another process has suspended the call for an approval.
    Waits(Box<PendingCall>),
    /// A person approved the call with other arguments.
    Replaced,
    /// The call began, and its owner's lease ended. Its effect key differs from the present one, because the definition
    /// has changed. This attempt does not own the call.
    Rekeyed,
    /// Earlier calls of the same effect have an unknown outcome, or another call holds the effect key. The call did not
    /// begin.
    Blocked(Blocked),
    /// The suspended call expired before its approval was carried out. The call did not begin, and is still suspended.
    Late,
}

/// Begins a call, takes an abandoned call over, or repeats an unacknowledged beginning. Writes the intent only if it
/// returns [`Begun::Now`] or [`Begun::Abandoned`].
pub(crate) fn begin(transaction: &mut Transaction, intent: &Intent) -> Result<Begun, StoreError> {
    transaction.refuse_purged(intent.key.scope())?;
    let until = after(transaction.now(), intent.lease);
    if let Some(grant) = &intent.grant
        && transaction.get(&intent.key).is_none()
        && !grants::holds(transaction, grant)
    {
        return Ok(Begun::Ungranted);
    }
    if let Some((key, arguments)) = &intent.waits
        && transaction.get(&intent.key).is_none()
        && let Some(Document::Waiting(waiting)) = transaction.get(key)
        && (waiting.idempotency_key.is_some_and(|key| **intent.key.id() == *key.to_string())
            // Under another definition, the call can have other defaults, and therefore another key.
            || *waiting.call.tool.as_str() == *intent.lost_record.name && waiting.call.is_of(*arguments))
    {
        return Ok(Begun::Waits(Box::new(waiting.call.clone())));
    }
    if intent.waits.is_some() && transaction.get(&Key::replaced(&intent.key)).is_some() {
        return Ok(Begun::Replaced);
    }
    if let Some(effect) = &intent.effect
        && let Some(blocked) = blocked(transaction, effect, &intent.key)
    {
        return Ok(Begun::Blocked(blocked));
    }
    let is_superseded =
        intent.effect.as_ref().is_some_and(|effect| effects::is_superseded(transaction, effect, &intent.key));
    let earlier = match transaction.get(&intent.key) {
        Some(Document::Call(entry)) => Some(&**entry),
        _ => None,
    };
    // Keep the later end: a clock that jumped back must not shorten the lease.
    let until = earlier.filter(|entry| entry.owner == intent.owner).map_or(until, |entry| until.max(entry.until));
    let (epoch, anew) = match earlier {
        None => (1, true),
        Some(entry) if entry.is_finished() => return Ok(Begun::Finished(entry.record.clone())),
        // A retry by the same attempt, because the answer to its first request was lost.
        Some(entry) if entry.owner == intent.owner => (entry.epoch, true),
        Some(entry) if !entry.is_abandoned(transaction.now(), intent.worker) => return Ok(Begun::Elsewhere),
        Some(entry) if is_rekeyed(entry, intent) => return Ok(Begun::Rekeyed),
        Some(entry) => (entry.epoch + 1, intent.repeatable && !is_superseded),
    };
    let (is_first, is_again) = (earlier.is_none(), epoch > 1);
    let waited = intent.waited.clone().or_else(|| earlier.and_then(|entry| entry.waited.clone()));
    // Keep the run that an earlier attempt chose, because that attempt might have had effects there. The id in the
    // intent differs from it if the digest key of the store has changed.
    let graph = earlier.and_then(|entry| entry.graph.clone()).or_else(|| intent.graph.clone());
    // The first attempt determines the contents. A later attempt might run under a policy with other notices.
    let notices = earlier.map_or_else(|| intent.notices.clone(), |entry| entry.notices.clone());
    // Keep the mark of the earlier attempt: if this process dies too, MCP servers find the call by the mark.
    let ends_with_process = intent.ends_with_process || earlier.is_some_and(|entry| entry.ends_with_process);
    let bill = intent.bill.as_ref().filter(|_| anew);
    let begun = match bill.map(|bill| accounts::reserve(transaction, bill)).transpose()? {
        Some(Ok(booked)) => Begun::Now { booked: Some(booked), graph: graph.clone(), is_again },
        None if anew => Begun::Now { booked: None, graph: graph.clone(), is_again },
        Some(Err(exceeded)) if is_first => return Ok(Begun::Exhausted(exceeded)),
        // A call that has begun before must not be reported as refused, even if the budget is exhausted now.
        Some(Err(_)) | None => Begun::Abandoned,
    };
    if let Some(grant) = intent.grant.as_ref().filter(|_| is_first) {
        grants::take(transaction, grant)?;
    }
    // `leave_or_close` releases the effect key of a call that it leaves open. An attempt that takes such a call over
    // claims the key again, unless another call has held it since.
    if let Some(effect) = intent.effect.as_ref().filter(|_| is_first || !is_superseded) {
        effects::hold(transaction, effect, &intent.key, &intent.lost_record.tool_call_id)?;
    }
    let record = Box::new(intent.lost_record.clone());
    let (owner, worker) = (Arc::clone(&intent.owner), intent.worker);
    let recoverable = intent.repeatable || intent.reconciles;
    let effect = intent.effect.as_ref().map(|effect| Arc::clone(effect.key.scope()));
    let entry = LedgerEntry {
        owner,
        epoch,
        until,
        worker,
        ends_with_process,
        recoverable,
        waited,
        graph,
        effect,
        notices,
        record,
    };
    transaction.set(&intent.key, Document::Call(Box::new(entry)))?;
    Ok(begun)
}

/// Returns the reason why a call may not begin because of other calls with the same effect. A call that has begun
/// before is not blocked.
pub(crate) fn blocked(transaction: &Transaction, effect: &EffectClaim, key: &Key) -> Option<Blocked> {
    if transaction.get(key).is_some() { None } else { effects::blocked(transaction, effect, key) }
}

/// Like [`blocked`], for a call that is about to wait for an approval. Also returns `None` if the call already waits
/// under the key `waits`, or if a person approved it with other arguments. The caller then finds the existing question,
/// or the approved call.
pub(crate) fn blocked_before_waiting(
    transaction: &Transaction,
    effect: &EffectClaim,
    (key, waits): (&Key, &Key),
) -> Option<Blocked> {
    let is_known = transaction.get(waits).is_some() || transaction.get(&Key::replaced(key)).is_some();
    if is_known { None } else { blocked(transaction, effect, key) }
}

/// Whether the key of the call's effect has changed since the call began, because its tool has another definition.
fn is_rekeyed(entry: &LedgerEntry, intent: &Intent) -> bool {
    let is_once = intent.effect.as_ref().is_some_and(|effect| effect.once.is_some());
    let now = intent.effect.as_ref().map(|effect| effect.key.scope());
    // A call that began as `read_only` holds no key. The policy may have raised its effect since then.
    entry.effect.as_ref() != now && (entry.effect.is_some() || is_once)
}

/// Returns the entry of a call that is about to be suspended. `None` if no other process has begun the call without an
/// approval.
pub(crate) fn begun<'t>(transaction: &'t Transaction, key: &Key) -> Option<&'t LedgerEntry> {
    if let Some(Document::Call(entry)) = transaction.get(key) { Some(entry) } else { None }
}

/// Records that a suspended call ended without running, so that no process begins it.
pub(crate) fn ended(transaction: &mut Transaction, key: &Key, record: &ToolInvocationRecord) -> Result<(), StoreError> {
    if transaction.get(key).is_some() {
        return Ok(());
    }
    let (until, record) = (transaction.now(), Box::new(record.clone()));
    let entry = LedgerEntry::closed("".into(), 1, until, record);
    transaction.set(key, Document::Call(Box::new(entry)))
}

/// Extends the lease of an attempt.
pub(crate) fn renew(transaction: &mut Transaction, key: &Key, owner: &str, lease: Duration) -> Result<(), StoreError> {
    let until = after(transaction.now(), lease);
    match transaction.get(key) {
        Some(Document::Call(entry)) if *entry.owner == *owner && !entry.is_finished() => {
            let mut entry = entry.clone();
            // Keep the later end: a clock that jumped back must not shorten the lease.
            entry.until = entry.until.max(until);
            transaction.set(key, Document::Call(entry))
        }
        _ => Err(StoreError::Fenced),
    }
}

/// Closes a call with its record, if this attempt owns the call or the ledger does not have the intent yet. Returns
/// whether the ledger has the intent.
///
/// An attempt that took the call over cannot know the effects of the earlier attempt. If it did not run the call, or if
/// `effect` is set and its record states that there was no effect, it closes the call with the record of a lost end. An
/// exception is a record with [`Cause::Prevented`]: the earlier attempt certainly had no effect.
///
/// - `effect`: the key of the document that lists the calls of the same effect, and the claim of this call on the
///   effect key. `None` if this end does not change the document.
/// - `terms`: the contents of the notice about an unknown outcome, for a call whose intent the ledger does not have.
pub(crate) fn finish(
    transaction: &mut Transaction,
    key: &Key,
    owner: &Arc<str>,
    record: &ToolInvocationRecord,
    effect: Option<(&Key, Option<OnceClaim>)>,
    terms: Option<&NoticeTerms>,
) -> Result<bool, StoreError> {
    let until = transaction.now();
    let mut record = record.clone();
    let (epoch, is_known, waited, noticed) = match transaction.get(key) {
        // The intent might still be queued. Write the entry of an ended call, which the intent finds when it arrives.
        None => (1, false, None, None),
        Some(Document::Call(entry)) if entry.owner == *owner => {
            if entry.is_finished() {
                // The end was written before, and only the acknowledgement was lost, so there is nothing to write.
                return Ok(true);
            }
            let had_none = !record.executed || (effect.is_some() && effects::had_none(record.outcome));
            if entry.epoch > 1 && had_none && record.cause != Some(Cause::Prevented) {
                record = ToolInvocationRecord { ended_at: Some(until), ..(*entry.record).clone() };
            }
            let waited = entry.waited.clone().filter(|_| entry.recoverable);
            (entry.epoch, true, waited, entry.notices.clone())
        }
        Some(_) => return Err(StoreError::Fenced),
    };
    let mut entry = LedgerEntry::closed(Arc::clone(owner), epoch, until, Box::new(record.clone()));
    // A settlement finds the document of the effect by this field.
    entry.effect = effect.filter(|_| entry.is_unknown()).map(|(effect, _)| Arc::clone(effect.scope()));
    transaction.set(key, Document::Call(Box::new(entry)))?;
    if let Some(effect) = effect {
        effects::ended(transaction, effect, key, &record, waited)?;
    }
    let terms = if is_known { noticed.as_deref() } else { terms };
    notices::ended(transaction, terms, &record)?;
    transaction.append(record)?;
    Ok(is_known)
}

/// Whether this attempt began the call, and the call has not ended.
pub(crate) fn has_begun(transaction: &Transaction, key: &Key, owner: &str) -> bool {
    matches!(transaction.get(key), Some(Document::Call(entry)) if *entry.owner == *owner && !entry.is_finished())
}

/// Withdraws an attempt that had no effect.
pub(crate) fn withdraw(transaction: &mut Transaction, key: &Key, owner: &str) -> Result<(), StoreError> {
    match transaction.get(key) {
        Some(Document::Call(entry)) if *entry.owner == *owner && !entry.is_finished() => transaction.remove(key),
        _ => Err(StoreError::Fenced),
    }
}

/// Makes a shared run due for a worker, because one of its calls ended outside any worker. Does nothing if the caller
/// passes its lease as `held`, or if the run acts for another principal or tenant.
pub(crate) fn ended_outside(
    transaction: &mut Transaction,
    run_id: &str,
    (principal, tenant): (Option<&Arc<str>>, Option<&Arc<str>>),
    held: Option<&RunLease>,
) -> Result<(), StoreError> {
    match transaction.get(&Key::run(run_id)) {
        Some(Document::Run(run)) if held.is_none() && run.is_of(principal, tenant) => runs::wake(transaction, run_id),
        _ => Ok(()),
    }
}

/// Checks that a worker still holds its run. Without a lease, nothing is checked.
pub(crate) fn check(transaction: &Transaction, held: Option<&RunLease>) -> Result<(), StoreError> {
    held.map_or(Ok(()), |lease| runs::check(transaction, lease))
}

pub(crate) fn after(now: Timestamp, duration: Duration) -> Timestamp {
    now.saturating_add(duration).unwrap_or(Timestamp::MAX)
}
