//! [`LedgerClient`]: writes the records of a run's calls, and the entries of its calls with effects in the ledger, the
//! store's list of begun calls.
//!
//! If a worker or an engine holds the run, each write checks the lease in its own transaction. The file is long because
//! it contains all writes of a run.

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

/// One attempt at a call, with the values that close its entry in the ledger.
#[derive(Clone)]
pub(in crate::runner) struct Attempt {
    pub(in crate::runner) key: Key,
    pub(in crate::runner) owner: Arc<str>,
    /// The amount that the attempt may have booked. `None` after the store has answered, or if the attempt books
    /// nothing.
    pub(in crate::runner) unheard: Option<Unacknowledged>,
    /// The id of the graph's run. `None` for other tools, and until the store has answered.
    pub(in crate::runner) graph: Option<Arc<str>>,
    /// The key of the call's effect, with its claim if the tool declares `once`. `None` if the call blocks no other.
    pub(in crate::runner) effect: Option<(Key, Option<OnceClaim>)>,
    /// The contents of the notice to send if the outcome is unknown. `None` if none is sent.
    pub(in crate::runner) notices: Option<Arc<NoticeTerms>>,
    /// Whether an earlier attempt may have had the effect.
    pub(in crate::runner) is_again: bool,
}

impl Attempt {
    /// Returns the keys that the transaction locks when it closes the call with this record.
    fn keys(&self, record: &ToolInvocationRecord) -> impl Iterator<Item = Key> {
        let effect = self.changed_effect(record).map(|(key, _)| key.clone());
        std::iter::once(self.key.clone()).chain(self.unheard.iter().flat_map(Unacknowledged::keys)).chain(effect)
    }

    /// Returns the key of the call's effect with its claim, if this end of the call changes the document of the effect.
    /// Most ends do not, and so neither lock nor read it.
    fn changed_effect(&self, record: &ToolInvocationRecord) -> Option<(&Key, Option<OnceClaim>)> {
        let is_changed = |is_once| self.is_again || effects::is_changed_by(record, is_once);
        self.effect.as_ref().filter(|(_, once)| is_changed(once.is_some())).map(|(key, once)| (key, *once))
    }

    /// Whether an effect with a key may have happened in an earlier attempt, although this one had no effect.
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
    /// The stored call that was compared with the run and the decision.
    pub(in crate::runner) waiting: Waiting,
    pub(in crate::runner) decision: DecisionRecord,
    /// Keeps other tasks of this run from deciding on the call.
    pub(in crate::runner) lock: DecisionLock,
}

/// A call whose suspension is being written to the store.
pub(in crate::runner) struct Suspending {
    pub(in crate::runner) call: PendingCall,
    /// The used amount that the same transaction books.
    pub(in crate::runner) settled: Option<Settled>,
}

/// The store's answer to a suspension.
pub(in crate::runner) enum SuspendOutcome {
    /// The call waits from now on.
    Waits,
    /// The call was suspended or decided before.
    Before,
    /// A process that needed no approval began the call. Contains the record if the call has ended.
    Begun(Option<Box<ToolInvocationRecord>>),
    /// A person allowed the call with other arguments.
    Replaced,
    /// The server of the call's client does not let the call wait.
    Refused,
}

impl Suspending {
    fn keys(&self) -> impl Iterator<Item = Key> {
        std::iter::once(Key::of_waiting(&self.call)).chain(self.settled.iter().flat_map(Settled::keys))
    }

    /// Withdraws the suspension of a call that ends instead, before any event reported it as waiting. If the suspension
    /// was not written, books its amount here, so that it is booked exactly once.
    fn withdraw(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        if waiting::withdraw(transaction, &self.call)? {
            return Ok(());
        }
        self.settled.iter().try_for_each(|settled| settled.write(transaction))
    }
}

/// Writes and reads the ledger entries, the waiting calls and the records of one run.
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
        // A single record needs no transaction over several documents.
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

    /// Writes the record of a call whose future was dropped before the store acknowledged the claim. If the claim did
    /// not succeed, the call still waits, and nothing is written.
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

    /// Writes the record of a decision that has no effect on its call.
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

    /// Returns the reason why other calls of the same effect block a call, before it suspends for an approval. `None`
    /// if none blocks it.
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

    /// Renews the lease of an attempt before its tool runs, unless the store answered quickly. If its answer took
    /// longer than the lease, another process may have closed the call as `outcome_unknown`.
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

    /// Polls a call that has begun, and renews its lease meanwhile. `None` if another attempt has taken the call over.
    pub(in crate::runner) async fn hold<T>(self, attempt: &Attempt, running: impl Future<Output = T>) -> Option<T> {
        let mut running = pin!(running);
        // A tool that is ready on its first poll needs no timer.
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

    /// Resolves when another attempt has taken the call over. While the store cannot be reached, the call continues.
    async fn prolong(self, attempt: &Attempt) {
        let lease = self.0.shared().lease;
        loop {
            // After a failed renewal, another one is possible before the lease ends.
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
            // Fails if another process has the run. The tool is then stopped, because the store would refuse its end.
            ledger::check(transaction, held.as_ref())?;
            ledger::renew(transaction, &key, &owner, lease)
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Removes a call from the waiting calls, once, in one transaction with the write of its next state.
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

    /// Stores an approval of a waiting call that needs several, in one transaction with the record of the decision.
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

    /// Gives a waiting call a new question, in one transaction with the record of the decision on the old one. Returns
    /// `false` if the call has expired.
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

    /// Stores a waiting call, unless the ledger contains it under the key `begun`. Removes from the ledger an `attempt`
    /// that only prepared the payload for a client. `entry` is the write of an MCP server for the same transaction.
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

    /// Books the amount of a call that gets no entry in the ledger.
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

    /// Returns the waiting calls of the run.
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
