//! Suspended calls: each is suspended once and finished once.

use jiff::Timestamp;

use crate::call::ToolInvocationRecord;
use crate::store::effects::Blocked;
use crate::store::ledger::{self, Begun, Intent};
use crate::store::{DecisionRecord, Document, Key, PendingCall, StoreError, StoredUnknown, Transaction, Waiting};

/// Returns the keys that suspending a call locks.
pub(crate) fn keys(call: &PendingCall) -> [Key; 2] {
    [Key::of_waiting(call), Key::decided(call)]
}

/// Stores a suspended call. Returns whether this suspended it: `false` if another process has suspended it before, or
/// it has been decided.
pub(crate) fn suspend(transaction: &mut Transaction, waiting: &Waiting) -> Result<bool, StoreError> {
    if transaction.get(&Key::decided(&waiting.call)).is_some() {
        return Ok(false);
    }
    let key = Key::of_waiting(&waiting.call);
    match transaction.get(&key) {
        None => transaction.set(&key, Document::Waiting(Box::new(waiting.clone()))).map(|()| true),
        Some(Document::Waiting(kept)) if kept.call.repeats(&waiting.call) => Ok(false),
        Some(_) => Err(StoreError::Duplicate),
    }
}

/// Withdraws a suspension by this process that was not reported yet. Returns whether the call was suspended.
pub(crate) fn withdraw(transaction: &mut Transaction, suspended: &PendingCall) -> Result<bool, StoreError> {
    let key = Key::of_waiting(suspended);
    match transaction.get(&key) {
        Some(Document::Waiting(kept)) if kept.call.is_same(suspended) => transaction.remove(&key).map(|()| true),
        _ => Ok(false),
    }
}

/// The end of a suspension.
#[derive(Clone)]
pub(crate) struct Taken {
    /// The call as it was when the decision on it was compared.
    pub(crate) call: PendingCall,
    /// The decision.
    pub(crate) decision: DecisionRecord,
    /// The key under which the ledger records the end of the suspended call, if it does not begin.
    pub(crate) ledger: Option<Key>,
    pub(crate) then: Then,
}

impl Taken {
    /// Returns the keys that have to be locked in addition to the run's.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let ledger = self.ledger.iter().flat_map(|key| [key.clone(), Key::replaced(key)]);
        keys(&self.call).into_iter().chain(ledger).chain(self.begins().into_iter().flat_map(Intent::keys))
    }

    /// Returns the intent to write to the ledger, if the call begins.
    pub(crate) fn begins(&self) -> Option<&Intent> {
        match &self.then {
            Then::Begin(intent) => Some(intent),
            Then::End(_) => None,
        }
    }
}

/// The fate of the call after the suspension.
#[derive(Clone)]
pub(crate) enum Then {
    /// The call ends with this record.
    End(Box<ToolInvocationRecord>),
    /// The call begins.
    Begin(Box<Intent>),
}

/// Asks about an approved call again, because the person who approved it was not shown that earlier calls of the same
/// effect have an unknown outcome. The decision is recorded as refused.
fn ask_anew(transaction: &mut Transaction, taken: &Taken, unknown: &[StoredUnknown]) -> Result<(), StoreError> {
    let key = Key::of_waiting(&taken.call);
    if let Some(Document::Waiting(waiting)) = transaction.get(&key) {
        let mut waiting = waiting.clone();
        waiting.call.ask_about(unknown.iter().map(|unknown| unknown.call.clone()).collect());
        transaction.set(&key, Document::Waiting(waiting))?;
    }
    transaction.append(taken.decision.clone().of_another_question())
}

/// Asks about a call again, because the world is not the one that the approver was shown. Records the decision that does
/// not count. Returns `false` if the call is no longer suspended as it was compared; the decision is then recorded as
/// refused for that reason.
pub(crate) fn renew(
    transaction: &mut Transaction,
    compared: &PendingCall,
    renewed: &Waiting,
    decision: &DecisionRecord,
) -> Result<bool, StoreError> {
    let key = Key::of_waiting(compared);
    match transaction.get(&key) {
        Some(Document::Waiting(waiting)) if waiting.call.is_same(compared) => {}
        _ => {
            if decision.decider.is_some() {
                transaction.append(decision.clone().not_pending())?;
            }
            return Ok(false);
        }
    }
    transaction.set(&key, Document::Waiting(Box::new(renewed.clone())))?;
    transaction.append(decision.clone())?;
    Ok(true)
}

/// Ends a suspension: records the decision, and begins or ends the call. Returns `None` if the call is no longer
/// suspended, or another call is suspended under its id; a person's decision is then recorded as refused. If an account
/// is exhausted, the call stays suspended. If earlier calls of the same effect have an unknown outcome, it stays
/// suspended with another question. If another call holds its effect key, it stays suspended, too.
pub(crate) fn take(transaction: &mut Transaction, taken: &Taken) -> Result<Option<Begun>, StoreError> {
    let key = Key::of_waiting(&taken.call);
    match transaction.get(&key) {
        Some(Document::Waiting(waiting)) if waiting.call.is_same(&taken.call) => {}
        _ => {
            if taken.decision.decider.is_some() {
                transaction.append(taken.decision.clone().not_pending())?;
            }
            return Ok(None);
        }
    }
    let begun = match &taken.then {
        Then::End(_) => Begun::Now(None, None, false),
        Then::Begin(intent) => match ledger::begin(transaction, intent)? {
            exhausted @ Begun::Exhausted(_) => return Ok(Some(exhausted)),
            Begun::Blocked(blocked) => {
                if let Blocked::Unknown(unknown) = &blocked {
                    ask_anew(transaction, taken, unknown)?;
                }
                return Ok(Some(Begun::Blocked(blocked)));
            }
            begun => begun,
        },
    };
    transaction.remove(&key)?;
    // The mark stops copies of the call, in a snapshot or in a token, from running it again, even against a store that
    // has dropped the records of the run.
    transaction.set(&Key::decided(&taken.call), Document::Decided { until: taken.call.expires_at })?;
    // The call began with the arguments of a person. A process that requires no approval must never begin it with the
    // model's arguments, no matter how much later it arrives.
    if let (Some(intent), Some(key)) = (taken.begins(), &taken.ledger)
        && intent.key != *key
    {
        transaction.set(&Key::replaced(key), Document::Decided { until: Timestamp::MAX })?;
    }
    transaction.append(taken.decision.clone())?;
    if let Then::End(record) = &taken.then {
        transaction.append((**record).clone())?;
        if let Some(key) = &taken.ledger {
            ledger::ended(transaction, key, record)?;
        }
    }
    Ok(Some(begun))
}
