//! Effects: which calls of one effect have an unknown outcome, so that no further call of it begins unnoticed.
//!
//! The ledger's key names one call; a model that repeats a call gives it another id. An effect is what such calls have
//! in common. Its document changes in the transaction that changes the ledger entry of a call.

use std::sync::Arc;

use crate::call::{Decider, JsonText, Outcome, ToolInvocationRecord};
use crate::store::{
    AuditRecord, DecisionKind, DecisionRecord, Document, Key, PendingCall, StoreError, StoredEffect, StoredUnknown,
    Transaction, UnknownCall,
};
use crate::tool::Hash;

/// The effect of a call that is about to begin.
#[derive(Debug, Clone)]
pub(crate) struct EffectClaim {
    /// The effect's key.
    pub(crate) key: Key,
    /// The calls of unknown outcome that were shown to the person who approved the call, by their idempotency keys.
    pub(crate) shown: Vec<Hash>,
}

/// Returns the calls of the effect whose outcome is unknown, unless each of them was shown to the person who approved
/// the call.
pub(crate) fn unshown(transaction: &Transaction, claim: &EffectClaim) -> Vec<StoredUnknown> {
    let Some(Document::Effect(effect)) = transaction.get(&claim.key) else { return Vec::new() };
    let is_shown = |unknown: &StoredUnknown| claim.shown.contains(&unknown.call.key);
    if effect.unknown.iter().all(is_shown) { Vec::new() } else { effect.unknown.clone() }
}

/// Whether the end of a call changes the document of its effect.
pub(crate) fn is_changed_by(record: &ToolInvocationRecord) -> bool {
    // The ledger may close a call that did not run with the record of a lost end.
    record.outcome == Outcome::OutcomeUnknown || !record.executed
}

/// Notes the end of the call that the ledger has under `call`.
pub(crate) fn ended(
    transaction: &mut Transaction,
    key: &Key,
    call: &Key,
    record: &ToolInvocationRecord,
    waited: Option<Box<PendingCall>>,
) -> Result<(), StoreError> {
    let (Ok(idempotency_key), Outcome::OutcomeUnknown) = (call.id().parse(), record.outcome) else { return Ok(()) };
    let mut effect = stored(transaction, key);
    if effect.unknown.iter().any(|unknown| unknown.call.key == idempotency_key) {
        return Ok(());
    }
    let unknown = UnknownCall {
        run_id: Arc::clone(call.scope()),
        call_id: record.tool_call_id.clone(),
        key: idempotency_key,
        since: record.ended_at.unwrap_or_else(|| transaction.now()),
        cause: record.cause,
    };
    effect.unknown.push(StoredUnknown { call: unknown, record: Box::new(record.clone()), waited });
    transaction.set(key, Document::Effect(Box::new(effect)))
}

/// How an unknown outcome is settled.
#[derive(Debug, Clone)]
pub(crate) struct Settlement {
    /// The projected result of a call that took effect. `None` if the call had no effect.
    pub(crate) result: Option<JsonText>,
    /// The person who settles it. `None` if its tool reconciled it.
    pub(crate) decider: Option<Decider>,
}

/// Returns the keys that settling a call locks.
pub(crate) fn settling_keys(effect: &Key, call: &UnknownCall) -> [Key; 3] {
    [effect.clone(), call.ledger_key(), Key::run(Arc::clone(&call.run_id))]
}

/// Settles an unknown outcome, with a record in the chain of the call's run. Returns whether it did: `false` if the
/// outcome was settled before.
pub(crate) fn settle(
    transaction: &mut Transaction,
    key: &Key,
    call: &UnknownCall,
    settlement: &Settlement,
) -> Result<bool, StoreError> {
    let mut effect = stored(transaction, key);
    let Some(at) = effect.unknown.iter().position(|unknown| unknown.call.key == call.key) else { return Ok(false) };
    let StoredUnknown { record, .. } = effect.unknown.remove(at);
    let kind = if settlement.result.is_some() { DecisionKind::Happened } else { DecisionKind::DidNotHappen };
    let now = transaction.now();
    if let Some(mut decision) =
        DecisionRecord::of_call(AuditRecord::Call(record.clone()), kind, settlement.decider.as_ref(), now)
    {
        decision.result.clone_from(&settlement.result);
        transaction.append(decision)?;
    }
    let ledger_key = call.ledger_key();
    if let Some(Document::Call(entry)) = transaction.get(&ledger_key)
        && entry.record.outcome == Outcome::OutcomeUnknown
        && entry.is_finished()
    {
        let mut entry = entry.clone();
        settled(&mut entry.record, settlement);
        transaction.set(&ledger_key, Document::Call(entry))?;
    }
    if effect.is_empty() {
        transaction.remove(key)?;
    } else {
        transaction.set(key, Document::Effect(Box::new(effect)))?;
    }
    Ok(true)
}

/// Changes the ledger's copy of a record to the settled outcome, so that the call is answered with it. The record in
/// the chain stays, and the record of the settlement follows it.
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
