//! Records refused decisions, and decisions on calls that do not wait, up to a limit.

use crate::call::{CallId, Decider, Question};
use crate::contain::discard;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::shared::Shared;
use crate::runner::{Run, ToolRunner};
use crate::store::{AuditRecord, DecisionKind, DecisionRecord, PendingCall, RecordFilter, Store as _, StoreError};

/// The maximum number of refused decisions of one decider that are recorded for a call. Without a limit, a person who
/// guesses ids could fill the store.
const MAX_REFUSALS_OF_DECIDER: usize = 16;

/// The maximum number of refused decisions of all deciders of other tenants together that are recorded for a call. It
/// is separate, so that they do not use up the limit of a decider of the call's tenant.
const MAX_REFUSALS_OF_STRANGERS: usize = 256;

/// A principal and a tenant.
pub(crate) type Party<'a> = (Option<&'a str>, Option<&'a str>);

/// Records a decision on a call of this run that does not wait, if the call has a record. Returns whether it has one.
pub(in crate::runner) async fn note_late(
    run: &Run,
    (id, question): (&CallId, Option<&Question>),
    kind: DecisionKind,
    decider: Option<&Decider>,
) -> bool {
    let shared = run.shared();
    let ours = |(principal, tenant): Party<'_>| run.owns(principal, tenant);
    let (noted, is_recorded) = match late(shared, (run.identity(), id, question), ours, (kind, decider)).await {
        Ok(Late::Record(record)) => (LedgerClient(run).note(*record).await.map(drop), true),
        Ok(late) => (Ok(()), !matches!(late, Late::Unknown)),
        // If the records cannot be read, the call may have one.
        Err(error) => (Err(error), true),
    };
    if let Err(error) = noted {
        discard(run.store_unread(error));
    }
    is_recorded
}

/// As [`note_late`], for a run that is not in this process. `party` is the run's principal and tenant, if known.
pub(crate) async fn append(
    runner: &ToolRunner,
    run_id: &str,
    party: Option<Party<'_>>,
    (id, question): (&CallId, Option<&Question>),
    (kind, decider): (DecisionKind, Option<&Decider>),
) -> Result<bool, StoreError> {
    // Two tenants can have the same run id, so without `party` the decider's tenant selects the call.
    let tenant = decider.and_then(Decider::tenant_id);
    let theirs = |found: Party<'_>| party.map_or(found.1 == tenant, |party| party == found);
    let shared = &runner.shared;
    match late(shared, (run_id, id, question), theirs, (kind, decider)).await? {
        Late::Record(record) => shared.store.append(AuditRecord::from(*record)).await.map(|()| true),
        Late::Enough => Ok(true),
        Late::Unknown => Ok(false),
    }
}

/// Records a refused decision on a call of this run, unless the maximum number of refusals is already recorded.
pub(in crate::runner) async fn note_refused(run: &Run, decision: DecisionRecord) -> Result<(), StoreError> {
    let call = RecordFilter::call(&*decision.run_id, decision.call_id.clone());
    let records = run.shared().store.records(&RecordFilter { decisions: Some(true), ..call }).await;
    // If the records cannot be counted, the refusal is recorded.
    let records = records.unwrap_or_else(|error| {
        discard(error);
        Vec::new()
    });
    let party = (decision.principal.as_deref(), decision.tenant.as_deref());
    let theirs = records.iter().map(|sealed| &sealed.record).filter(|record| party_of(record) == party);
    if has_enough(theirs, decision.decider.as_ref()) {
        return Ok(());
    }
    LedgerClient(run).note(decision).await
}

/// Whether this very decision of a person on a question was carried out before, by any process that has the run.
/// `pending` is the call, if it still waits.
pub(crate) async fn was_carried_out(
    run: &Run,
    pending: Option<&PendingCall>,
    question: &Question,
    (kind, decider): (DecisionKind, &Decider),
) -> Result<bool, StoreError> {
    // A person's approval can be stored while the call waits for others with the same question.
    let asks = |call: &PendingCall| {
        call.question() == *question && !(kind == DecisionKind::Approved && call.needs_others_than(decider))
    };
    if pending.is_some_and(asks) {
        return Ok(false);
    }
    let is_it = |decision: &DecisionRecord| {
        decision.question.as_ref() == Some(question)
            && decision.decider.as_ref() == Some(decider)
            && (decision.decision == kind || decision.decision == DecisionKind::TooLate)
    };
    has_decision(run, question.call_id(), is_it).await
}

/// Whether the client of a call answered it before, in any process that has the run.
pub(crate) async fn was_answered(run: &Run, id: &CallId) -> Result<bool, StoreError> {
    let is_answer = |kind| matches!(kind, DecisionKind::ClientResult | DecisionKind::ClientFailed);
    has_decision(run, id, |decision| is_answer(decision.decision)).await
}

/// Whether a decision on a call of this run that `is_it` accepts was carried out.
async fn has_decision(run: &Run, id: &CallId, is_it: impl Fn(&DecisionRecord) -> bool) -> Result<bool, StoreError> {
    let of_call = RecordFilter { decisions: Some(true), ..RecordFilter::call(run.id(), id.clone()) };
    let records = run.shared().store.records(&of_call).await.map_err(|error| run.store_unread(error))?;
    let ours = |one: &&DecisionRecord| run.owns(one.principal.as_deref(), one.tenant.as_deref());
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
    Ok(decisions.filter(ours).any(|decision| decision.refused.is_none() && is_it(decision)))
}

/// Whether these records of a call contain the maximum number of refused decisions.
fn has_enough<'r>(records: impl Iterator<Item = &'r AuditRecord>, decider: Option<&Decider>) -> bool {
    let refused = records.filter_map(AuditRecord::as_decision).filter(|decision| decision.refused.is_some());
    let (mut strangers, mut theirs, mut is_stranger) = (0, 0, false);
    for refused in refused {
        let (by, tenant) = (refused.decider.as_ref(), refused.tenant.as_deref());
        strangers += usize::from(by.is_some_and(|by| by.tenant_id() != tenant));
        theirs += usize::from(by.map(person) == decider.map(person));
        is_stranger = decider.is_some_and(|decider| decider.tenant_id() != tenant);
    }
    theirs >= MAX_REFUSALS_OF_DECIDER || (is_stranger && strangers >= MAX_REFUSALS_OF_STRANGERS)
}

fn person(decider: &Decider) -> (&str, Option<&str>) {
    (decider.principal(), decider.tenant_id())
}

fn party_of(record: &AuditRecord) -> Party<'_> {
    (record.principal().map(|id| &**id), record.tenant().map(|id| &**id))
}

/// The result of [`late`].
enum Late {
    Record(Box<DecisionRecord>),
    /// The maximum number of refusals is recorded.
    Enough,
    /// The call has no record of an accepted party, or no person made the decision.
    Unknown,
}

/// Returns the record to write for a decision on a call that does not wait. `wanted` selects the party of the call's
/// records.
async fn late(
    shared: &Shared,
    (run_id, id, question): (&str, &CallId, Option<&Question>),
    wanted: impl Fn(Party<'_>) -> bool,
    (kind, decider): (DecisionKind, Option<&Decider>),
) -> Result<Late, StoreError> {
    if decider.is_none() {
        return Ok(Late::Unknown);
    }
    let (store, of_call) = (&shared.store, RecordFilter::call(run_id, id.clone()));
    let of_party = |record: &AuditRecord| wanted(party_of(record));
    let records = store.records(&of_call).await?.into_iter().map(|sealed| sealed.record);
    let records: Vec<_> = records.filter(of_party).collect();
    if has_enough(records.iter(), decider) {
        return Ok(Late::Enough);
    }
    // A call that still waits has an open record. A running call has only the record of its decision.
    let open = store.open_records(&of_call).await?.into_iter().map(AuditRecord::from).filter(of_party);
    let known = records.into_iter().chain(open).last();
    let record = known.and_then(|known| DecisionRecord::late(known, kind, decider, shared.clock.now()));
    let record = record.map(|record| Box::new(DecisionRecord { question: question.cloned(), ..record }));
    Ok(record.map_or(Late::Unknown, Late::Record))
}
