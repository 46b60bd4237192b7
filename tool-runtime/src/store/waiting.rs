//! Suspended calls: each is suspended once and finished once.
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

/// Returns the keys that suspending a call locks.
pub(crate) fn keys(call: &PendingCall) -> [Key; 2] {
    [Key::of_waiting(call), Key::decided(call)]
}

/// Stores a suspended call. Returns whether this suspended it: `false` if another process has suspended it before, or
/// it has been decided.
pub(crate) fn suspend(transaction: &mut Transaction, waiting: &Waiting) -> Result<bool, StoreError> {
    transaction.refuse_purged(&waiting.call.run_id)?;
    if transaction.get(&Key::decided(&waiting.call)).is_some() {
        return Ok(false);
    }
    let key = Key::of_waiting(&waiting.call);
    match transaction.get(&key) {
        None => put(transaction, waiting.clone()).map(|()| true),
        Some(Document::Waiting(kept)) if kept.call.repeats(&waiting.call) => {
            // A snapshot or a token can bring approvals that another store noted.
            if let Some(merged) = with_approvals_of(kept, waiting) {
                put(transaction, merged)?;
            }
            Ok(false)
        }
        // It keeps the question that it asks, under the definition and the policy with which it was suspended.
        Some(Document::Waiting(kept)) if kept.call.is_same_call(&waiting.call) => Ok(false),
        Some(_) => Err(StoreError::Duplicate),
    }
}

/// Writes a suspended call, with a notice if it asks another question than before.
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

/// Adds the approvals of another copy of the call that asks the same question. `None` if it has no other approvals.
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

/// The result of an approval of a call that needs several.
pub(crate) enum Counted {
    /// It was the last one that the call needs. The call is taken next, with this approval.
    Last(Box<PendingCall>),
    /// It is noted, and the call waits for the approvals of other deciders.
    Noted(Box<Waiting>),
    /// It has no effect, for the reason that is recorded.
    Refused(Uncounted),
}

/// The reason why an approval is not counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncounted {
    /// The decider has approved the call before.
    Again,
    /// The call asks another question.
    Other,
    /// The call does not wait.
    Gone,
    /// The call has expired.
    Late,
}

/// Returns why a decider may not decide on a waiting call, `None` if they may.
pub(crate) type Bars = Arc<dyn Fn(&PendingCall, &Decider) -> Option<DecisionError> + Send + Sync>;

/// An approval of a call that needs several.
#[derive(Clone)]
pub(crate) struct Approval {
    /// The call as it was when the approval was compared.
    pub(crate) call: PendingCall,
    pub(crate) decision: DecisionRecord,
    pub(crate) decider: Decider,
    /// How many deciders the call needs at present: its run can have gained labels since it was suspended.
    pub(crate) required: u32,
    /// The call with the arguments of this decider, which asks another question. `None` if they are not edited.
    pub(crate) replaced: Option<PendingCall>,
    /// The rule for the earlier deciders of the call, whom a process without its tool or with another policy may have
    /// admitted. `None` in such a process.
    pub(crate) bars: Option<Bars>,
}

/// An approval that was compared with the call as it waits now. Nothing is written yet.
pub(crate) struct Plan<'a> {
    approval: &'a Approval,
    /// The call with the approvals that count before this one.
    waiting: Box<Waiting>,
    /// The earlier approvals that do not count.
    dropped: Vec<(Decider, DecisionError)>,
    is_last: bool,
}

/// Compares an approval with the call as it waits now, and its earlier deciders with the rules.
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
    /// Whether the call has all of its approvals with this one.
    pub(crate) const fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns the question that the approval answers.
    pub(crate) fn question(&self) -> Question {
        self.approval.call.question()
    }

    /// Writes the approval with its record, unless it is the last one. An approval that does not count is removed from
    /// the call, with a separate record.
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

/// Counts an approval: notes it with its record, unless it is the last one that the call needs. An approval that has no
/// effect, because the call was decided or asks another question, is recorded as refused. That of a person who approved
/// the call before, or after the call expired, is recorded by the caller.
pub(crate) fn approve(transaction: &mut Transaction, approval: &Approval) -> Result<Counted, StoreError> {
    match plan(transaction, approval) {
        Ok(plan) => plan.write(transaction),
        Err(why) => {
            refuse(transaction, approval, why)?;
            Ok(Counted::Refused(why))
        }
    }
}

/// Records an approval that is not counted.
pub(crate) fn refuse(transaction: &mut Transaction, approval: &Approval, why: Uncounted) -> Result<(), StoreError> {
    let decision = approval.decision.clone();
    match why {
        Uncounted::Other => transaction.append(decision.of_another_question()),
        Uncounted::Gone => transaction.append(decision.not_pending()),
        Uncounted::Again | Uncounted::Late => Ok(()),
    }
}

/// Withdraws a suspension by this process that was not reported yet. Returns whether the call was suspended.
pub(crate) fn withdraw(transaction: &mut Transaction, suspended: &PendingCall) -> Result<bool, StoreError> {
    let key = Key::of_waiting(suspended);
    match transaction.get(&key) {
        Some(Document::Waiting(kept)) if kept.call.is_same(suspended) => {
            // A notice that it waits may have been sent.
            let kept = kept.clone();
            notices::decided(transaction, &kept, DecisionKind::Abandoned, None)?;
            transaction.remove(&key).map(|()| true)
        }
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
    pub(crate) then: Fate,
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
            Fate::Begin(intent) => Some(intent),
            Fate::End(_) => None,
        }
    }

    /// Whether the call expired before a decision that lets it have an effect, or that replaces its output, is carried
    /// out. The decision was compared before the transaction, maybe long before.
    fn is_late(&self, now: Timestamp) -> bool {
        let counts = matches!(
            self.decision.decision,
            DecisionKind::Approved | DecisionKind::Edited | DecisionKind::Answered | DecisionKind::ClientResult
        );
        counts && self.call.is_expired(now)
    }
}

/// The fate of the call after the suspension.
#[derive(Clone)]
pub(crate) enum Fate {
    /// The call ends with this record.
    End(Box<ToolInvocationRecord>),
    /// The call begins.
    Begin(Box<Intent>),
}

/// Asks about an approved call again, because earlier calls of the same effect are not as they were shown to the person
/// who approved it. The decision is recorded as refused.
fn ask_anew(transaction: &mut Transaction, taken: &Taken, earlier: &EarlierCalls) -> Result<(), StoreError> {
    let key = Key::of_waiting(&taken.call);
    if let Some(Document::Waiting(waiting)) = transaction.get(&key) {
        let mut waiting = (**waiting).clone();
        waiting.call.ask_about(earlier.named());
        put(transaction, waiting)?;
    }
    transaction.append(taken.decision.clone().of_another_question())
}

/// Whether the call has all of the approvals that the decision needs, and still has those that were counted with it.
/// Another process may have noted approvals since, of deciders whom it could not judge; these do not count.
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

/// Records a person's decision that finds another suspension than the one it was compared with, or none.
fn not_taken(transaction: &mut Transaction, decision: &DecisionRecord) -> Result<(), StoreError> {
    match decision.decider {
        Some(_) => transaction.append(decision.clone().not_pending()),
        None => Ok(()),
    }
}

/// Asks about a call again, because its precondition has changed since the approver saw it, and records the decision,
/// which does not count. If the stored call differs from `compared`, a person's decision is recorded as refused.
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

/// Whether a call is asked about again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewed {
    Asked,
    /// The call is no longer suspended as it was compared.
    Gone,
    /// The call has expired. It is still suspended, and nothing is written.
    Late,
}

/// Ends a suspension: records the decision, and begins or ends the call. Returns `None` if the call is no longer
/// suspended, or another call is suspended under its id; a person's decision is then recorded as refused. If an account
/// is exhausted, the call stays suspended. If earlier calls of the same effect are not as they were shown, it stays
/// suspended with another question. If another call holds its effect key, it stays suspended, too. An approval of a
/// call that has expired begins nothing, and an answer in its tool's place is recorded as refused. A result of the
/// client is not taken either; the caller ends the call.
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
            // A graph continues with the decision, and the call that it waits for is not carried out.
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
