//! [`LedgerClient`]: the writes of a run to the store: the records of its calls, and the ledger entries of those with
//! effects.
//!
//! Every write of a run that a worker holds is checked against the worker's lease, in the write's own transaction. The
//! file is long because all of these writes are here.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::time::Instant;

use crate::call::{Outcome, ToolInvocationRecord};
use crate::policy::NoticeTerms;
use crate::runner::ledger::accounts::{Settled, Unacknowledged};
use crate::runner::waiting::decision_lock::DecisionLock;
use crate::runner::waiting::notices::of_ended;
use crate::runner::{ResumeError, Run, ServerEntry};
use crate::store::accounts::{self, Bill};
use crate::store::effects::{self, Blocked, EffectClaim, OnceClaim};
use crate::store::ledger::{self, Begun, Intent};
use crate::store::notices;
use crate::store::pages::Search;
use crate::store::waiting::{self, Approval, Counted, Renewed, Taken};
use crate::store::{
    AuditRecord, DecisionRecord, Document, DocumentKind, Key, PendingCall, Query, Store as _, StoreError, Transaction,
    Waiting, WriteHandle, transact,
};

/// The maximum number of attempts to renew a lease before a call begins.
const CONFIRMATIONS: u32 = 3;

/// One attempt at a call, as the ledger knows it.
#[derive(Clone)]
pub(in crate::runner) struct Attempt {
    pub(in crate::runner) key: Key,
    pub(in crate::runner) owner: Arc<str>,
    /// The amount that the attempt may have booked. `None` once the store has answered, and if the attempt books
    /// nothing.
    pub(in crate::runner) unheard: Option<Unacknowledged>,
    /// The id of the graph's run. `None` for any other tool, and until the ledger has answered.
    pub(in crate::runner) graph: Option<Arc<str>>,
    /// The key of the call's effect, with the claim if `once` names it. `None` if no other call of it has to wait.
    pub(in crate::runner) effect: Option<(Key, Option<OnceClaim>)>,
    /// The contents of the notice if its outcome is unknown. `None` if there is none.
    pub(in crate::runner) notices: Option<Arc<NoticeTerms>>,
    /// An earlier attempt may have had the effect.
    pub(in crate::runner) is_again: bool,
}

impl Attempt {
    /// Returns the keys that closing the call with this record locks.
    fn keys(&self, record: &ToolInvocationRecord) -> impl Iterator<Item = Key> {
        let effect = self.changed_effect(record).map(|(key, _)| key.clone());
        std::iter::once(self.key.clone()).chain(self.unheard.iter().flat_map(Unacknowledged::keys)).chain(effect)
    }

    /// Returns the key of the call's effect with its claim, if this end of the call changes its document. Most ends do
    /// not, so that they lock and read nothing more.
    fn changed_effect(&self, record: &ToolInvocationRecord) -> Option<(&Key, Option<OnceClaim>)> {
        let is_changed = |is_once| self.is_again || effects::is_changed_by(record, is_once);
        self.effect.as_ref().filter(|(_, once)| is_changed(once.is_some())).map(|(key, once)| (key, *once))
    }

    /// Whether the effect, which has a key, may have happened although this attempt states that it did not.
    pub(in crate::runner) fn leaves_unknown(&self, outcome: Outcome) -> bool {
        self.is_again && self.effect.as_ref().is_some_and(|(_, once)| once.is_some()) && effects::had_none(outcome)
    }

    fn note(&self, begun: &Begun) {
        if let Some(unheard) = &self.unheard {
            unheard.note(begun);
        }
    }

    /// Closes the call in the ledger with its record.
    fn finish(&self, transaction: &mut Transaction, record: &ToolInvocationRecord) -> Result<(), StoreError> {
        let effect = self.changed_effect(record);
        let terms = self.notices.as_deref();
        match (ledger::finish(transaction, &self.key, &self.owner, record, effect, terms)?, &self.unheard) {
            (true, Some(unheard)) => unheard.give_back(transaction),
            _ => Ok(()),
        }
    }
}

/// A waiting call that this run is about to finish.
pub(in crate::runner) struct Claim {
    /// The stored call, as it was compared.
    pub(in crate::runner) waiting: Waiting,
    pub(in crate::runner) decision: DecisionRecord,
    /// Until the call is taken or given up, no other task of this run decides on it.
    pub(in crate::runner) lock: DecisionLock,
}

/// A call whose suspension is on its way to the store.
pub(in crate::runner) struct Suspending {
    pub(in crate::runner) call: PendingCall,
    /// The booking of the same transaction.
    pub(in crate::runner) settled: Option<Settled>,
}

/// The store's answer to a suspension.
pub(in crate::runner) enum SuspendOutcome {
    /// The call waits from now on.
    Waits,
    /// The call was suspended or decided before.
    Before,
    /// Begun by a process that needed no approval; carries the record if the call ended.
    Begun(Option<Box<ToolInvocationRecord>>),
    /// A person allowed the call with other arguments.
    Replaced,
    /// The server of its client does not let it wait.
    Refused,
}

impl Suspending {
    fn keys(&self) -> impl Iterator<Item = Key> {
        std::iter::once(Key::of_waiting(&self.call)).chain(self.settled.iter().flat_map(Settled::keys))
    }

    /// Withdraws the suspension of a call that ends instead; no event reported it as waiting. Its booking is made once.
    fn withdraw(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        if waiting::withdraw(transaction, &self.call)? {
            return Ok(());
        }
        self.settled.iter().try_for_each(|settled| settled.write(transaction))
    }
}

/// The ledger as one run uses it, and the records of the run.
#[derive(Clone, Copy)]
pub(in crate::runner) struct LedgerClient<'r>(pub(in crate::runner) &'r Run);

impl LedgerClient<'_> {
    /// Writes the record of a call that ended, closes the call in the ledger if it began there, and books the used
    /// amount. Withdraws the suspension of a call that was about to wait.
    pub(in crate::runner) fn put(
        self,
        record: Box<ToolInvocationRecord>,
        attempt: Option<&Attempt>,
        settled: Option<Settled>,
        suspending: Option<Box<Suspending>>,
    ) -> WriteHandle {
        let store = &self.0.shared().store;
        let terms = attempt.is_none().then(|| of_ended(self.0, &record)).flatten();
        // Only the record has to be written, so no transaction over several documents is needed.
        let is_alone = attempt.is_none() && settled.is_none() && suspending.is_none() && terms.is_none();
        if is_alone && self.0.options().lease.is_none() {
            return store.append(AuditRecord::Call(record));
        }
        self.put_with(record, attempt.cloned(), settled, suspending, terms)
    }

    /// Writes a record together with the other writes of the call's end.
    fn put_with(
        self,
        record: Box<ToolInvocationRecord>,
        attempt: Option<Attempt>,
        settled: Option<Settled>,
        suspending: Option<Box<Suspending>>,
        terms: Option<Arc<NoticeTerms>>,
    ) -> WriteHandle {
        let (store, lease) = (&self.0.shared().store, self.0.lease());
        let mut keys = self.0.keys();
        keys.extend(suspending.iter().flat_map(|suspending| suspending.keys()));
        keys.extend(attempt.iter().flat_map(|attempt| attempt.keys(&record)));
        keys.extend(settled.iter().flat_map(Settled::keys));
        store.update(
            keys,
            Box::new(move |transaction| {
                ledger::check(transaction, lease.as_ref())?;
                suspending.iter().try_for_each(|suspending| suspending.withdraw(transaction))?;
                settled.iter().try_for_each(|settled| settled.write(transaction))?;
                match &attempt {
                    Some(attempt) => attempt.finish(transaction, &record)?,
                    None => {
                        notices::ended(transaction, terms.as_deref(), &record)?;
                        transaction.append(AuditRecord::Call(record.clone()))?;
                    }
                }
                ledger::ended_outside(transaction, &record.run_id, party_of(&record), lease.as_ref())
            }),
        )
    }

    /// Writes the record of a claimed call whose future was dropped before the store acknowledged the claim. If the
    /// claim was not taken, the call still waits, and nothing is written.
    pub(in crate::runner) fn put_if_begun(self, record: Box<ToolInvocationRecord>, attempt: Attempt) -> WriteHandle {
        let (lease, mut keys) = (self.0.lease(), self.0.keys());
        keys.extend(attempt.keys(&record));
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            if !ledger::has_begun(transaction, &attempt.key, &attempt.owner) {
                return Ok(());
            }
            attempt.finish(transaction, &record)?;
            ledger::ended_outside(transaction, &record.run_id, party_of(&record), lease.as_ref())
        };
        self.0.shared().store.update(keys, Box::new(change))
    }

    /// Writes a record of a decision that did not match.
    pub(in crate::runner) fn note(self, decision: DecisionRecord) -> WriteHandle {
        let record = AuditRecord::from(decision);
        let Some(lease) = self.0.lease() else { return self.0.shared().store.append(record) };
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, Some(&lease))?;
            transaction.append(record.clone())
        };
        self.0.shared().store.update(self.0.keys(), Box::new(change))
    }

    /// Enters a call into the ledger before its effect begins.
    pub(in crate::runner) async fn enter(self, intent: Intent, attempt: Attempt) -> Result<Begun, StoreError> {
        let (lease, mut keys) = (self.0.lease(), self.0.keys());
        keys.extend(intent.keys());
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            let begun = ledger::begin(transaction, &intent)?;
            attempt.note(&begun);
            Ok(begun)
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Returns the reason for which a call would be blocked by others of its effect, before it suspends for an
    /// approval.
    pub(in crate::runner) async fn look_for_others(
        self,
        effect: EffectClaim,
        (key, waits): (Key, Key),
    ) -> Result<Option<Blocked>, StoreError> {
        let (lease, mut keys) = (self.0.lease(), self.0.keys());
        keys.extend([key.clone(), Key::replaced(&key), waits.clone()].into_iter().chain(effect.keys()));
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            Ok(ledger::blocked_before_waiting(transaction, &effect, (&key, &waits)))
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Renews the lease of an attempt before its tool runs. The store may have taken longer to answer than the lease
    /// lasts; another process may then have closed the call as `outcome_unknown`.
    pub(in crate::runner) async fn confirm(self, attempt: &Attempt, mut asked: Instant) -> Result<(), StoreError> {
        let lease = self.0.shared().lease;
        for _ in 0..CONFIRMATIONS {
            if asked.elapsed() < lease / 2 {
                return Ok(());
            }
            asked = Instant::now();
            self.renew(attempt).await?;
        }
        // A store this slow cannot confirm the owner of the call.
        Err(StoreError::Fenced)
    }

    /// Polls a call that has begun, and renews its lease meanwhile. `None` if another attempt has the call.
    pub(in crate::runner) async fn hold<T>(self, attempt: &Attempt, running: impl Future<Output = T>) -> Option<T> {
        let mut running = pin!(running);
        // A tool that is ready on its first poll pays for no timer.
        if let Poll::Ready(ended) = poll_fn(|context| Poll::Ready(running.as_mut().poll(context))).await {
            return Some(ended);
        }
        let mut prolonged = pin!(self.prolong(attempt));
        poll_fn(|context| {
            if let Poll::Ready(ended) = running.as_mut().poll(context) {
                return Poll::Ready(Some(ended));
            }
            prolonged.as_mut().poll(context).map(|()| None)
        })
        .await
    }

    /// Resolves when another attempt has the call. While the store cannot be reached, the owner is unknown and the call
    /// continues.
    async fn prolong(self, attempt: &Attempt) {
        let lease = self.0.shared().lease;
        loop {
            // A failed renewal leaves time for another one within the lease.
            tokio::time::sleep(lease / 3).await;
            if let Err(StoreError::Fenced) = self.renew(attempt).await {
                return;
            }
        }
    }

    async fn renew(self, attempt: &Attempt) -> Result<(), StoreError> {
        let (lease, Attempt { key, owner, .. }) = (self.0.shared().lease, attempt.clone());
        let (held, mut keys) = (self.0.lease(), self.0.keys());
        keys.push(key.clone());
        let change = move |transaction: &mut Transaction| {
            // The end of the call would be refused, too. Its tool is stopped, because another process has the run.
            ledger::check(transaction, held.as_ref())?;
            ledger::renew(transaction, &key, &owner, lease)
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Takes a call out of the waiting calls, once, in one transaction with the next state of the call.
    pub(in crate::runner) async fn take(self, taken: Taken, attempt: Option<Attempt>) -> Result<Begun, ResumeError> {
        let id = taken.call.call_id.clone();
        let mut keys = self.0.keys();
        keys.extend(taken.keys());
        let lease = self.0.lease();
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            let begun = waiting::take(transaction, &taken)?;
            if let (Some(begun), Some(attempt)) = (&begun, &attempt) {
                attempt.note(begun);
            }
            if begun.is_some() && taken.begins().is_none() {
                let party = (taken.call.principal.as_ref(), taken.call.tenant.as_ref());
                ledger::ended_outside(transaction, &taken.call.run_id, party, lease.as_ref())?;
            }
            Ok(begun)
        };
        let begun = transact(&self.0.shared().store, keys, change).await.map_err(|error| self.0.store_failed(error))?;
        begun.ok_or(ResumeError::NotWaiting(id))
    }

    /// Counts an approval of a waiting call that needs several, in one transaction with its record.
    pub(in crate::runner) async fn approve(self, approval: Approval) -> Result<Counted, ResumeError> {
        let (lease, mut keys) = (self.0.lease(), self.0.keys());
        keys.extend(waiting::keys(&approval.call));
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            waiting::approve(transaction, &approval)
        };
        transact(&self.0.shared().store, keys, change).await.map_err(|error| self.0.store_failed(error))
    }

    /// Adds labels to a waiting call.
    pub(in crate::runner) async fn gain(self, call: Key, labels: Vec<Arc<str>>) -> Result<(), StoreError> {
        let (lease, mut keys) = (self.0.lease(), self.0.keys());
        keys.push(call.clone());
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            waiting::gain(transaction, &call, &labels)
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Asks about a waiting call again, in one transaction with the decision that does not count. Returns `false` if
    /// the call has expired.
    pub(in crate::runner) async fn ask_anew(
        self,
        compared: PendingCall,
        renewed: Waiting,
        decision: DecisionRecord,
    ) -> Result<bool, ResumeError> {
        let id = compared.call_id.clone();
        let (lease, mut keys) = (self.0.lease(), self.0.keys());
        keys.push(Key::of_waiting(&compared));
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            waiting::renew(transaction, &compared, &renewed, &decision)
        };
        let renewed =
            transact(&self.0.shared().store, keys, change).await.map_err(|error| self.0.store_failed(error))?;
        match renewed {
            Renewed::Asked => Ok(true),
            Renewed::Late => Ok(false),
            Renewed::Gone => Err(ResumeError::NotWaiting(id)),
        }
    }

    /// Stores a waiting call, unless the ledger knows it under `begun`. An attempt that only prepared the payload for a
    /// client leaves the ledger. `entry` is the write of the server that keeps the call for its client.
    pub(in crate::runner) async fn keep(
        self,
        waiting: Waiting,
        entry: Option<ServerEntry>,
        begun: Option<Key>,
        attempt: Option<Attempt>,
        settled: Option<Settled>,
    ) -> Result<SuspendOutcome, StoreError> {
        let mut keys = self.0.keys();
        keys.extend(begun.iter().flat_map(|key| [key.clone(), Key::replaced(key)]));
        keys.extend(waiting::keys(&waiting.call));
        keys.extend(attempt.as_ref().map(|attempt| attempt.key.clone()));
        keys.extend(settled.iter().flat_map(Settled::keys));
        keys.extend(entry.iter().flat_map(|entry| entry.keys.iter().cloned()));
        let lease = self.0.lease();
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            if let Some(entry) = begun.as_ref().and_then(|key| ledger::begun(transaction, key)) {
                return Ok(SuspendOutcome::Begun(entry.is_finished().then(|| entry.record.clone())));
            }
            if begun.as_ref().is_some_and(|key| transaction.get(&Key::replaced(key)).is_some()) {
                return Ok(SuspendOutcome::Replaced);
            }
            if let Some(entry) = &entry
                && !(entry.write)(transaction)?
            {
                return Ok(SuspendOutcome::Refused);
            }
            settled.iter().try_for_each(|settled| settled.write(transaction))?;
            if let Some(Attempt { key, owner, .. }) = &attempt {
                ledger::withdraw(transaction, key, owner)?;
            }
            Ok(if waiting::suspend(transaction, &waiting)? { SuspendOutcome::Waits } else { SuspendOutcome::Before })
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Books a call that the ledger does not know.
    pub(in crate::runner) async fn book(self, bill: Bill) -> Result<Begun, StoreError> {
        let (lease, mut keys) = (self.0.lease(), self.0.keys());
        keys.extend(accounts::Account::keys(&bill.accounts));
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            Ok(match accounts::reserve(transaction, &bill)? {
                Ok(booked) => Begun::Now { booked: Some(booked), graph: None, is_again: false },
                Err(exceeded) => Begun::Exhausted(exceeded),
            })
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Lists the calls of the run that wait.
    pub(in crate::runner) async fn all_waiting(self) -> Result<Vec<Waiting>, StoreError> {
        let scope = Some(Arc::clone(self.0.identity()));
        let mut search = Search::of(Query { scope, ..Query::new(DocumentKind::Waiting) });
        let mut waiting = Vec::new();
        while let Some(page) = search.next(&self.0.shared().store).await? {
            waiting.extend(page.into_iter().filter_map(|listed| match listed.document {
                Document::Waiting(waiting)
                    if self.0.owns(waiting.call.principal.as_deref(), waiting.call.tenant.as_deref()) =>
                {
                    Some(*waiting)
                }
                _ => None,
            }));
        }
        search.end()?;
        Ok(waiting)
    }
}

/// The principal and the tenant of a call.
fn party_of(record: &ToolInvocationRecord) -> (Option<&Arc<str>>, Option<&Arc<str>>) {
    (record.principal.as_ref(), record.tenant.as_ref())
}
