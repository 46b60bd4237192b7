//! Changes of suspended calls. A call is suspended once and finished once.
//!
//! The file is long because each change of a suspended call is here, together with its record and its notice.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{Decider, DecisionError, Outcome, Question, ToolInvocationRecord};
use crate::store::effects::{Blocked, EarlierCalls};
use crate::store::ledger::{self, Begun, Intent};
use crate::store::notices;
use crate::store::{
    DecisionKind, DecisionRecord, DecisionRefusal, Document, Key, PendingCall, StoreError, Transaction, Waiting,
};

/// Returns the keys that a transaction locks to suspend a call.
pub(crate) fn keys(call: &PendingCall) -> [Key; 2] {
    [Key::of_waiting(call), Key::decided(call)]
}

/// Stores a suspended call. Returns `false` if another process has already suspended it, or it has already been
/// decided.
pub(crate) fn suspend(transaction: &mut Transaction, waiting: &Waiting) -> Result<bool, StoreError> {
    transaction.refuse_purged(&waiting.call.run_id)?;
    if transaction.get(&Key::decided(&waiting.call)).is_some() {
        return Ok(false);
    }
    let key = Key::of_waiting(&waiting.call);
    match transaction.get(&key) {
        None => put(transaction, waiting.clone()).map(|()| true),
        Some(Document::Waiting(kept)) if kept.call.repeats(&waiting.call) => {
            // A snapshot or a token can contain approvals that another store recorded.
            if let Some(merged) = with_approvals_of(kept, waiting) {
                put(transaction, merged)?;
            }
            Ok(false)
        }
        // The stored call keeps its question, and the definition and the policy under which it was suspended.
        Some(Document::Waiting(kept)) if kept.call.is_same_call(&waiting.call) => Ok(false),
        Some(_) => Err(StoreError::Duplicate),
    }
}

/// Writes a suspended call. Adds a notice if the call is new or its question has changed.
fn put(transaction: &mut Transaction, waiting: Waiting) -> Result<(), StoreError> {
    let key = Key::of_waiting(&waiting.call);
    if waiting.notices.is_some() {
        let before = match transaction.get(&key) {
            Some(Document::Waiting(before)) => Some(before.call.clone()),
            _ => None,
        };
        notices::waits(transaction, &waiting, before.as_ref())?;
    }
    transaction.set(&key, Document::Waiting(Box::new(waiting)))
}

/// Returns `kept` with the additional approvals of another copy of the call. `None` if the copy has no additional
/// approvals, or another question.
pub(crate) fn with_approvals_of(kept: &Waiting, other: &Waiting) -> Option<Waiting> {
    let is_new = |decider: &&Decider| !kept.call.is_approved_by(decider);
    let mut new = other.call.approvals.iter().filter(is_new).peekable();
    new.peek()?;
    if kept.call.question() != other.call.question() {
        return None;
    }
    let mut merged = kept.clone();
    merged.call.approvals.extend(new.cloned());
    Some(merged)
}

/// Adds labels that the run of a suspended call gained.
pub(crate) fn gain(transaction: &mut Transaction, key: &Key, labels: &[Arc<str>]) -> Result<(), StoreError> {
    let Some(Document::Waiting(kept)) = transaction.get(key) else { return Ok(()) };
    let mut waiting = kept.clone();
    waiting.call.gain(labels);
    transaction.set(key, Document::Waiting(waiting))
}

/// The result of an approval of a call that needs several approvals.
pub(crate) enum Counted {
    /// The approval is the last one that the call needs. The caller takes the call next, with this approval.
    Last(Box<PendingCall>),
    /// The approval is recorded, and the call waits for the approvals of other deciders.
    Noted(Box<Waiting>),
    /// The approval has no effect.
    Refused(Uncounted),
}

/// The reason why an approval is not counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncounted {
    /// The decider has approved the call before.
    Again,
    /// The question of the call has changed.
    Other,
    /// The call no longer waits.
    Gone,
    /// The call has expired.
    Late,
}

/// Returns the reason why a decider may not decide on a waiting call. `None` if they may.
pub(crate) type Bars = Arc<dyn Fn(&PendingCall, &Decider) -> Option<DecisionError> + Send + Sync>;

/// An approval of a call that needs several approvals.
#[derive(Clone)]
pub(crate) struct Approval {
    /// The call with which the approval was compared before the transaction.
    pub(crate) call: PendingCall,
    pub(crate) decision: DecisionRecord,
    pub(crate) decider: Decider,
    /// The number of deciders who have to approve the call now. It can be higher than at the suspension, because its
    /// run can have gained labels.
    pub(crate) required: u32,
    /// The call with this decider's arguments, and therefore with a new question. `None` if the decider did not edit
    /// the arguments.
    pub(crate) replaced: Option<PendingCall>,
    /// Checks the earlier deciders of the call again, because the processes that counted them may have lacked the tool
    /// or had another policy. `None` if this process cannot check them either.
    pub(crate) bars: Option<Bars>,
}

/// An approval after it was compared with the stored call. Nothing is written yet.
pub(crate) struct Plan<'a> {
    approval: &'a Approval,
    /// The call with the earlier approvals that are still valid.
    waiting: Box<Waiting>,
    /// The earlier approvals that are no longer valid.
    dropped: Vec<(Decider, DecisionError)>,
    is_last: bool,
}

/// Compares an approval with the stored call, and checks the earlier deciders again.
pub(crate) fn plan<'a>(transaction: &Transaction, approval: &'a Approval) -> Result<Plan<'a>, Uncounted> {
    let Approval { call, decider, required, replaced, bars, .. } = approval;
    let mut waiting = match transaction.get(&Key::of_waiting(call)) {
        Some(Document::Waiting(waiting)) if waiting.call.question() == call.question() => waiting.clone(),
        Some(Document::Waiting(_)) => return Err(Uncounted::Other),
        _ => return Err(Uncounted::Gone),
    };
    if waiting.call.is_expired(transaction.now()) {
        return Err(Uncounted::Late);
    }
    let mut dropped = Vec::new();
    if let Some(replaced) = replaced {
        let kept = std::mem::replace(&mut waiting.call, replaced.clone());
        waiting.call.gain_those_of(&kept);
        return Ok(Plan { approval, waiting, dropped, is_last: false });
    }
    waiting.call.required = waiting.call.required.max(*required);
    if let Some(bars) = bars {
        for decider in std::mem::take(&mut waiting.call.approvals) {
            match bars(&waiting.call, &decider) {
                None => waiting.call.approvals.push(decider),
                Some(why) => dropped.push((decider, why)),
            }
        }
    }
    let is_last = waiting.call.is_last_approval(decider);
    if !is_last && waiting.call.is_approved_by(decider) {
        return Err(Uncounted::Again);
    }
    Ok(Plan { approval, waiting, dropped, is_last })
}

impl Plan<'_> {
    /// Whether this approval is the last one that the call needs.
    pub(crate) const fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns the question that the approval answers.
    pub(crate) fn question(&self) -> Question {
        self.approval.call.question()
    }

    /// Writes the approval and its record, unless it is the last one. Earlier approvals that are no longer valid are
    /// removed from the call, each with a record.
    pub(crate) fn write(self, transaction: &mut Transaction) -> Result<Counted, StoreError> {
        let Self { approval: Approval { decision, decider, .. }, mut waiting, dropped, is_last } = self;
        for (decider, why) in &dropped {
            transaction.append(not_counted(&waiting.call, decider, *why, decision))?;
        }
        if is_last {
            if !dropped.is_empty() {
                put(transaction, (*waiting).clone())?;
            }
            return Ok(Counted::Last(Box::new(waiting.call)));
        }
        waiting.call.approvals.push(decider.clone());
        let given = u32::try_from(waiting.call.approvals.len()).unwrap_or(u32::MAX);
        put(transaction, (*waiting).clone())?;
        transaction.append(DecisionRecord { approvals: Some((given, waiting.call.required)), ..decision.clone() })?;
        Ok(Counted::Noted(waiting))
    }
}

/// Returns the record of an earlier approval that is dropped.
fn not_counted(call: &PendingCall, decider: &Decider, why: DecisionError, next: &DecisionRecord) -> DecisionRecord {
    let refused = DecisionRefusal { outcome: Outcome::PolicyDenied, mismatch: Some(why), violations: Vec::new() };
    let record = DecisionRecord::new(call, DecisionKind::Approved, Some(decider), next.at);
    DecisionRecord { refused: Some(refused), question: Some(call.question()), ..record }
}

/// Counts an approval. Unless it is the last one that the call needs, it is written with its record. An approval of a
/// call that no longer waits, or whose question has changed, is recorded as refused. The caller records a repeated
/// approval of the same person, and an approval that came after the call expired.
pub(crate) fn approve(transaction: &mut Transaction, approval: &Approval) -> Result<Counted, StoreError> {
    match plan(transaction, approval) {
        Ok(plan) => plan.write(transaction),
        Err(why) => {
            refuse(transaction, approval, why)?;
            Ok(Counted::Refused(why))
        }
    }
}

/// Records an approval as refused, unless the caller of [`approve`] records it.
pub(crate) fn refuse(transaction: &mut Transaction, approval: &Approval, why: Uncounted) -> Result<(), StoreError> {
    let decision = approval.decision.clone();
    match why {
        Uncounted::Other => transaction.append(decision.of_another_question()),
        Uncounted::Gone => transaction.append(decision.not_pending()),
        Uncounted::Again | Uncounted::Late => Ok(()),
    }
}

/// Removes a suspension that this process wrote and has not reported yet. Returns whether the call was suspended.
pub(crate) fn withdraw(transaction: &mut Transaction, suspended: &PendingCall) -> Result<bool, StoreError> {
    let key = Key::of_waiting(suspended);
    match transaction.get(&key) {
        Some(Document::Waiting(kept)) if kept.call.is_same(suspended) => {
            // A notice about the waiting call may have been sent.
            let kept = kept.clone();
            notices::decided(transaction, &kept, DecisionKind::Abandoned, None)?;
            transaction.remove(&key).map(|()| true)
        }
        _ => Ok(false),
    }
}

/// The end of a suspension, by a decision.
#[derive(Clone)]
pub(crate) struct Taken {
    /// The call with which the decision was compared before the transaction.
    pub(crate) call: PendingCall,
    /// The decision.
    pub(crate) decision: DecisionRecord,
    /// The key under which the ledger records the end of the suspended call, if it does not begin.
    pub(crate) ledger: Option<Key>,
    pub(crate) then: Fate,
}

impl Taken {
    /// Returns the keys to lock in addition to that of the run.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let ledger = self.ledger.iter().flat_map(|key| [key.clone(), Key::replaced(key)]);
        keys(&self.call).into_iter().chain(ledger).chain(self.begins().into_iter().flat_map(Intent::keys))
    }

    /// Returns the intent for the ledger. `None` if the call does not begin.
    pub(crate) fn begins(&self) -> Option<&Intent> {
        match &self.then {
            Fate::Begin(intent) => Some(intent),
            Fate::End(_) => None,
        }
    }

    /// Whether the call has expired since the decision was compared, possibly long before the transaction. Denials and
    /// other decisions without an effect are never late.
    fn is_late(&self, now: Timestamp) -> bool {
        let counts = matches!(
            self.decision.decision,
            DecisionKind::Approved | DecisionKind::Edited | DecisionKind::Answered | DecisionKind::ClientResult
        );
        counts && self.call.is_expired(now)
    }
}

/// The next state of a call after its suspension.
#[derive(Clone)]
pub(crate) enum Fate {
    /// The call ends with this record.
    End(Box<ToolInvocationRecord>),
    /// The call begins.
    Begin(Box<Intent>),
}

/// Asks a new question about an approved call, because earlier calls of the same effect have changed since they were
/// shown to the decider. Records the decision as refused.
fn ask_anew(transaction: &mut Transaction, taken: &Taken, earlier: &EarlierCalls) -> Result<(), StoreError> {
    let key = Key::of_waiting(&taken.call);
    if let Some(Document::Waiting(waiting)) = transaction.get(&key) {
        let mut waiting = (**waiting).clone();
        waiting.call.ask_about(earlier.named());
        put(transaction, waiting)?;
    }
    transaction.append(taken.decision.clone().of_another_question())
}

/// Whether the approvals that were counted with the decision are still stored, and are enough for the stored call.
/// Approvals that another process recorded meanwhile are ignored, because that process may be unable to check their
/// deciders.
fn is_approved(call: &PendingCall, taken: &Taken) -> bool {
    match (&taken.decision.decider, taken.decision.decision) {
        (Some(decider), DecisionKind::Approved | DecisionKind::Edited | DecisionKind::Answered) => {
            taken.call.required >= call.required
                && taken.call.is_last_approval(decider)
                && taken.call.approvals.iter().all(|counted| call.is_approved_by(counted))
        }
        _ => true,
    }
}

/// Records a person's decision as refused, because the call no longer waits or another call is suspended under its id.
fn not_taken(transaction: &mut Transaction, decision: &DecisionRecord) -> Result<(), StoreError> {
    match decision.decider {
        Some(_) => transaction.append(decision.clone().not_pending()),
        None => Ok(()),
    }
}

/// Asks a new question about a call, because its precondition has changed since it was shown to the approver. Records
/// the decision, which has no effect. If the stored call differs from `compared`, a person's decision is recorded as
/// refused.
pub(crate) fn renew(
    transaction: &mut Transaction,
    compared: &PendingCall,
    renewed: &Waiting,
    decision: &DecisionRecord,
) -> Result<Renewed, StoreError> {
    let mut renewed = renewed.clone();
    match transaction.get(&Key::of_waiting(compared)) {
        Some(Document::Waiting(waiting)) if waiting.call.is_same(compared) => renewed.call.gain_those_of(&waiting.call),
        _ => {
            not_taken(transaction, decision)?;
            return Ok(Renewed::Gone);
        }
    }
    if compared.is_expired(transaction.now()) {
        return Ok(Renewed::Late);
    }
    put(transaction, renewed)?;
    transaction.append(decision.clone())?;
    Ok(Renewed::Asked)
}

/// The result of asking a new question.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewed {
    Asked,
    /// The stored call differs from the compared call, or was removed.
    Gone,
    /// The call has expired. It is still suspended, and nothing is written.
    Late,
}

/// Ends a suspension: records the decision, and begins or ends the call. Returns `None` if the call is no longer
/// suspended, or another call is suspended under its id; a person's decision is then recorded as refused.
///
/// The call stays suspended if an account is exhausted, if another call holds its effect key, or, with a new question,
/// if earlier calls of the same effect have changed since they were shown. If the call has expired, an approval does
/// not begin it, a value in the tool's place is recorded as refused, and a client's result is not accepted. The caller
/// then ends the call.
pub(crate) fn take(transaction: &mut Transaction, taken: &Taken) -> Result<Option<Begun>, StoreError> {
    let key = Key::of_waiting(&taken.call);
    let noticed = match transaction.get(&key) {
        Some(Document::Waiting(waiting)) if waiting.call.is_same(&taken.call) && is_approved(&waiting.call, taken) => {
            waiting.notices.is_some().then(|| waiting.clone())
        }
        _ => {
            not_taken(transaction, &taken.decision)?;
            return Ok(None);
        }
    };
    let mut decision = taken.decision.clone();
    if taken.is_late(transaction.now()) {
        decision = decision.too_late();
        match &taken.then {
            Fate::End(_) => {
                not_taken(transaction, &decision)?;
                return Ok(None);
            }
            // A graph continues with the decision, but the call for which it waits does not run.
            Fate::Begin(_) if taken.call.graph.is_some() => {}
            Fate::Begin(_) => return Ok(Some(Begun::Late)),
        }
    }
    let begun = match &taken.then {
        Fate::End(_) => Begun::Now { booked: None, graph: None, is_again: false },
        Fate::Begin(intent) => match ledger::begin(transaction, intent)? {
            exhausted @ Begun::Exhausted(_) => return Ok(Some(exhausted)),
            Begun::Blocked(blocked) => {
                if let Blocked::Unknown(earlier) = &blocked {
                    ask_anew(transaction, taken, earlier)?;
                }
                return Ok(Some(Begun::Blocked(blocked)));
            }
            begun => begun,
        },
    };
    transaction.remove(&key)?;
    // The mark prevents a copy of the call in a snapshot or a token from running again, even if the store has dropped
    // the records of the run.
    transaction.set(&Key::decided(&taken.call), Document::Decided { until: taken.call.expires_at })?;
    // The call began with the arguments of a person. A process that requires no approval must never begin it with the
    // model's arguments, no matter how much later it arrives.
    if let (Some(intent), Some(key)) = (taken.begins(), &taken.ledger)
        && intent.key != *key
    {
        transaction.set(&Key::replaced(key), Document::Decided { until: Timestamp::MAX })?;
    }
    let (kind, decider) = (decision.decision, decision.decider.clone());
    transaction.append(decision)?;
    if let Some(waiting) = &noticed {
        notices::decided(transaction, waiting, kind, decider.as_ref())?;
    }
    if let Fate::End(record) = &taken.then {
        transaction.append((**record).clone())?;
        if let Some(waiting) = &noticed {
            notices::ended_waiting(transaction, waiting, record)?;
        }
        if let Some(key) = &taken.ledger {
            ledger::ended(transaction, key, record)?;
        }
    }
    Ok(Some(begun))
}
