//! The document of an effect lists the calls whose outcome is unknown, so that no further call begins without an
//! approval. It also names the call that holds the effect key.
//!
//! The ledger has one key for each call, but a model that repeats a call gives it another id. An effect therefore
//! groups calls: those with the same effect key, or those of one tool with the same arguments for one principal of a
//! tenant. The document of an effect changes in the transaction that changes the ledger entry of a call.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{CallId, Decider, JsonText, Outcome, ToolInvocationRecord};
use crate::store::{
    AuditRecord, DecisionKind, DecisionRecord, Document, EffectHolder, Key, KnownOutcome, PendingCall, RecordedUnknown,
    StoreError, StoredEffect, StoredUnknown, Transaction, UnknownCall,
};
use crate::tool::Hash;

/// The effect of a call that is about to begin.
#[derive(Debug, Clone)]
pub(crate) struct EffectClaim {
    /// The key of the document of the effect.
    pub(crate) key: Key,
    /// The earlier calls that were shown to the person who approved the call, with the outcomes known at that time.
    pub(crate) shown: Vec<UnknownCall>,
    /// The claim on the effect key of `once`. `None` without an effect key: then only calls of unknown outcome block
    /// the next call.
    pub(crate) once: Option<OnceClaim>,
}

impl EffectClaim {
    /// Returns the keys that a transaction locks to check the claim.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let unknown = self.shown.iter().filter(|shown| shown.known.is_none());
        std::iter::once(self.key.clone()).chain(unknown.map(UnknownCall::ledger_key))
    }
}

/// The claim of a call on its effect key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnceClaim {
    /// How many seconds the result is kept. `None` if it is kept forever.
    pub(crate) keep: Option<u64>,
}

/// The reason why a call does not begin.
#[derive(Debug, Clone)]
pub(crate) enum Blocked {
    /// An earlier call had the effect. The holder has its record.
    Had(Box<EffectHolder>),
    /// Another call that is running holds the effect key.
    Runs,
    /// Earlier calls have an unknown outcome, or have changed since they were shown to the person who approved the
    /// call.
    Unknown(EarlierCalls),
}

/// The earlier calls of an effect, for a question about a later call.
#[derive(Debug, Clone, Default)]
pub(crate) struct EarlierCalls {
    /// The calls whose outcome is unknown.
    pub(crate) unknown: Vec<StoredUnknown>,
    /// The calls whose outcome was unknown in the question about the later call, and is known now.
    pub(crate) known: Vec<UnknownCall>,
}

impl EarlierCalls {
    /// Returns all of these calls, as a question names them.
    pub(crate) fn named(&self) -> Vec<UnknownCall> {
        self.unknown.iter().map(|unknown| &unknown.call).chain(&self.known).cloned().collect()
    }
}

/// Returns the reason why a call without an entry in the ledger may not begin. The transaction has locked the claim's
/// [keys](EffectClaim::keys).
pub(crate) fn blocked(transaction: &Transaction, claim: &EffectClaim, call: &Key) -> Option<Blocked> {
    let effect = match transaction.get(&claim.key) {
        Some(Document::Effect(effect)) => Some(&**effect),
        _ => None,
    };
    if let Some(held) = effect.and_then(|effect| effect.held.as_ref()) {
        match &held.record {
            Some(_) if held.until.is_none_or(|until| transaction.now() < until) => {
                return Some(Blocked::Had(held.clone()));
            }
            None if *held.ledger_key().id() != *call.id() => return Some(Blocked::Runs),
            _ => {}
        }
    }
    let earlier = earlier(transaction, effect.map_or(&[], |effect| &effect.unknown), claim);
    is_unshown(&earlier, claim).then_some(Blocked::Unknown(earlier))
}

/// Returns the calls of the effect whose outcome is unknown, and the current outcomes of the other calls that the
/// approver saw.
fn earlier(transaction: &Transaction, unknown: &[StoredUnknown], claim: &EffectClaim) -> EarlierCalls {
    let is_unknown = |shown: &&UnknownCall| unknown.iter().any(|unknown| unknown.call.key == shown.key);
    let known = |shown: &UnknownCall| UnknownCall {
        known: Some(shown.known.unwrap_or_else(|| known_outcome(transaction, shown))),
        ..shown.clone()
    };
    let known = claim.shown.iter().filter(|shown| !is_unknown(shown)).map(known).collect();
    EarlierCalls { unknown: unknown.to_vec(), known }
}

/// Returns the outcome of a call that the document of its effect no longer lists.
fn known_outcome(transaction: &Transaction, call: &UnknownCall) -> KnownOutcome {
    match transaction.get(&call.ledger_key()) {
        Some(Document::Call(entry)) if entry.is_finished() && took_effect(entry.record.outcome) => {
            KnownOutcome::TookEffect
        }
        Some(Document::Call(entry)) if entry.is_finished() && had_none(entry.record.outcome) => {
            KnownOutcome::DidNotHappen
        }
        _ => KnownOutcome::Deleted,
    }
}

/// Whether a person has to approve the call again, because the question did not name an earlier call of unknown
/// outcome, or because an earlier call is now known to have taken effect. A person who approves despite an unknown
/// outcome accepts that a second effect is possible, not that it is certain. An earlier call that had no effect does
/// not invalidate the approval.
fn is_unshown(earlier: &EarlierCalls, claim: &EffectClaim) -> bool {
    let unknown = earlier.unknown.iter().map(|unknown| &unknown.call);
    let known = earlier.known.iter().filter(|call| call.known != Some(KnownOutcome::DidNotHappen));
    let is_shown =
        |call: &UnknownCall| claim.shown.iter().any(|shown| (shown.key, shown.known) == (call.key, call.known));
    !unknown.chain(known).all(is_shown)
}

/// Stores a call as the holder of its effect key, when it begins or is taken over.
pub(crate) fn hold(
    transaction: &mut Transaction,
    claim: &EffectClaim,
    call: &Key,
    call_id: &CallId,
) -> Result<(), StoreError> {
    let (Some(once), Ok(key)) = (claim.once, call.id().parse()) else { return Ok(()) };
    let mut effect = stored(transaction, &claim.key);
    let (run_id, call_id) = (Arc::clone(call.scope()), call_id.clone());
    effect.held = Some(Box::new(EffectHolder::new(run_id, call_id, key)));
    (effect.keep, effect.is_once) = (once.keep, true);
    transaction.set(&claim.key, Document::Effect(Box::new(effect)))
}

/// Whether another call has held the effect key since `call` began. If so, `call` does not run again.
pub(crate) fn is_superseded(transaction: &Transaction, claim: &EffectClaim, call: &Key) -> bool {
    let Some(Document::Effect(effect)) = transaction.get(&claim.key).filter(|_| claim.once.is_some()) else {
        return false;
    };
    let is_its = |key: &Key| *key.id() == *call.id();
    // A later call whose outcome is unknown no longer holds the key. The list is in the order in which calls lost it.
    let later = effect.unknown.iter().rev().take_while(|unknown| !is_its(&unknown.call.ledger_key())).count();
    effect.held.as_ref().is_some_and(|held| !is_its(&held.ledger_key())) || (later > 0 && later < effect.unknown.len())
}

/// Whether the end of a call changes the document of its effect.
pub(crate) fn is_changed_by(record: &ToolInvocationRecord, is_once: bool) -> bool {
    // If this attempt did not run the call, but an earlier one may have, `ledger::finish` makes it `outcome_unknown`.
    is_once || record.outcome == Outcome::OutcomeUnknown || !record.executed
}

/// Updates the document of the effect at the end of the call with the ledger key `call`. `once` is the call's claim on
/// the effect key. It is needed only if the intent, which also writes the claim, may not have reached the ledger.
pub(crate) fn ended(
    transaction: &mut Transaction,
    (key, once): (&Key, Option<OnceClaim>),
    call: &Key,
    record: &ToolInvocationRecord,
    waited: Option<Box<PendingCall>>,
) -> Result<(), StoreError> {
    let Ok(idempotency_key) = call.id().parse() else { return Ok(()) };
    let mut effect = stored(transaction, key);
    if let Some(once) = once {
        (effect.keep, effect.is_once) = (once.keep, true);
    }
    let is_holder = effect.held.as_ref().is_some_and(|held| held.key == idempotency_key);
    let listed = effect.unknown.iter().position(|unknown| unknown.call.key == idempotency_key);
    let is_known = record.outcome != Outcome::OutcomeUnknown;
    if !is_holder && listed.is_none() == is_known {
        return Ok(());
    }
    if is_holder && took_effect(record.outcome) {
        had(&mut effect, transaction.now(), record);
    } else if is_holder {
        // The call failed without the effect, or its outcome is unknown.
        effect.held = None;
    } else if effect.is_once
        && listed.is_some()
        && took_effect(record.outcome)
        && effect.held.as_ref().is_none_or(|held| held.record.is_none())
    {
        // The call was left open, and a person may have approved a second call, which runs now. The end of the second
        // call then does not release the effect key.
        let (run_id, call_id, key) = (Arc::clone(call.scope()), record.tool_call_id.clone(), idempotency_key);
        effect.held = Some(Box::new(EffectHolder::new(run_id, call_id, key)));
        had(&mut effect, transaction.now(), record);
    }
    match listed {
        // The call was left open until now.
        Some(at) if is_known => drop(effect.unknown.remove(at)),
        None if !is_known => list(&mut effect, call, idempotency_key, record, waited, transaction.now()),
        _ => {}
    }
    write(transaction, key, effect)
}

/// Adds a call to the list of unknown outcomes.
fn list(
    effect: &mut StoredEffect,
    call: &Key,
    key: Hash,
    record: &ToolInvocationRecord,
    waited: Option<Box<PendingCall>>,
    now: Timestamp,
) {
    let unknown = UnknownCall {
        run_id: Arc::clone(call.scope()),
        call_id: record.tool_call_id.clone(),
        key,
        since: record.ended_at.unwrap_or(now),
        cause: record.cause,
        is_once: effect.is_once,
        known: None,
    };
    effect.unknown.push(StoredUnknown { call: unknown, record: Box::new(record.clone()), waited });
}

/// Whether a call with this outcome had its effect. A tool that returns an error states that it had no effect. If the
/// tool was interrupted or lost, the outcome is unknown.
const fn took_effect(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Ok | Outcome::OutputInvalid | Outcome::RedactionFailed | Outcome::ResultTooLarge)
}

/// Whether a call with this outcome states that it had no effect.
pub(crate) fn had_none(outcome: Outcome) -> bool {
    !took_effect(outcome) && outcome != Outcome::OutcomeUnknown
}

/// Stores the record of the call that had the effect.
fn had(effect: &mut StoredEffect, now: Timestamp, record: &ToolInvocationRecord) {
    let until = effect.keep.map(|seconds| now.saturating_add(Duration::from_secs(seconds)).unwrap_or(Timestamp::MAX));
    if let Some(held) = &mut effect.held {
        (held.record, held.until) = (Some(Box::new(record.clone())), until);
    }
}

fn write(transaction: &mut Transaction, key: &Key, effect: StoredEffect) -> Result<(), StoreError> {
    if effect.is_empty() { transaction.remove(key) } else { transaction.set(key, Document::Effect(Box::new(effect))) }
}

/// The settlement of an unknown outcome.
#[derive(Debug, Clone)]
pub(crate) struct Settlement {
    /// The result of a call that took effect, with only the parts that the tool's allowlist names. `None` if the call
    /// had no effect.
    pub(crate) result: Option<JsonText>,
    /// The person who settles the outcome. `None` if the tool reconciled the call.
    pub(crate) decider: Option<Decider>,
}

/// Returns the keys that a transaction locks to settle a call.
pub(crate) fn settling_keys(effect: &Key, call: &UnknownCall) -> [Key; 3] {
    [effect.clone(), call.ledger_key(), Key::run_head(Arc::clone(&call.run_id))]
}

/// Settles an unknown outcome, with a record in the chain of the call's run. Returns `false` if the outcome was settled
/// before.
pub(crate) fn settle(
    transaction: &mut Transaction,
    key: &Key,
    call: &UnknownCall,
    settlement: &Settlement,
) -> Result<bool, StoreError> {
    let mut effect = stored(transaction, key);
    let Some(at) = effect.unknown.iter().position(|unknown| unknown.call.key == call.key) else { return Ok(false) };
    let StoredUnknown { mut record, waited, call: unknown } = effect.unknown.remove(at);
    let kind = if settlement.result.is_some() { DecisionKind::Happened } else { DecisionKind::DidNotHappen };
    let now = transaction.now();
    if let Some(mut decision) =
        DecisionRecord::of_call(AuditRecord::Call(record.clone()), kind, settlement.decider.as_ref(), now)
    {
        decision.result.clone_from(&settlement.result);
        decision.argument_digest = waited.and_then(|waited| waited.record_digest);
        let (since, cause, effect_key) = (unknown.since, unknown.cause, record.effect_key.clone());
        decision.unknown = Some(Box::new(RecordedUnknown { since, cause, effect_key }));
        transaction.append(decision)?;
    }
    let ledger_key = call.ledger_key();
    if let Some(Document::Call(entry)) = transaction.get(&ledger_key)
        && entry.is_unknown()
    {
        let mut entry = entry.clone();
        entry.effect = None;
        settled(&mut entry.record, settlement);
        transaction.set(&ledger_key, Document::Call(entry))?;
    }
    // A person may have approved a second call, which runs now. Its end then does not release the effect key.
    let is_had = effect.held.as_ref().is_some_and(|held| held.record.is_some());
    if effect.is_once && !is_had && settlement.result.is_some() {
        let UnknownCall { run_id, call_id, key, .. } = call.clone();
        effect.held = Some(Box::new(EffectHolder::new(run_id, call_id, key)));
        settled(&mut record, settlement);
        had(&mut effect, now, &record);
    }
    write(transaction, key, effect)?;
    Ok(true)
}

/// Changes the ledger's copy of a record to the settled outcome, so that later requests for the call return this
/// outcome. The record in the chain does not change, and the record of the settlement follows it.
fn settled(record: &mut ToolInvocationRecord, settlement: &Settlement) {
    record.result.clone_from(&settlement.result);
    if settlement.result.is_some() {
        (record.outcome, record.cause, record.safe_message) = (Outcome::Ok, None, None);
    } else {
        record.outcome = Outcome::Cancelled;
        record.safe_message = Some("This call had no effect. It may be made again, as a new call.".to_owned());
    }
}

fn stored(transaction: &Transaction, key: &Key) -> StoredEffect {
    match transaction.get(key) {
        Some(Document::Effect(effect)) => (**effect).clone(),
        _ => StoredEffect::default(),
    }
}
