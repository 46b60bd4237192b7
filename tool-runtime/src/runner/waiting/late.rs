//! Decisions on a call that does not wait: they have no effect, but are recorded.

use crate::call::{CallId, Decider, Question};
use crate::contain::discard;
use crate::runner::Run;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::shared::Shared;
use crate::store::{AuditRecord, DecisionKind, DecisionRecord, RecordFilter, StoreError};

/// How many refused decisions are recorded for a call that does not wait. Ids can be guessed, and a sender
/// of decisions must not be able to fill the store.
const MAX_RECORDED_REFUSALS: usize = 16;

/// A principal and a tenant.
pub(in crate::runner) type Party<'a> = (Option<&'a str>, Option<&'a str>);

/// Records a decision on a call of this run that does not wait. A call without a record leaves nothing.
pub(in crate::runner) async fn note_late(
    run: &Run,
    (id, question): (&CallId, Option<&Question>),
    kind: DecisionKind,
    decider: Option<&Decider>,
) {
    let shared = run.shared();
    let ours = |(principal, tenant): Party<'_>| run.owns(principal, tenant);
    let late = late(shared, (run.identity(), id, question), ours, (kind, decider)).await;
    let noted = match late {
        Ok(Some(record)) => LedgerClient(run).note(record).await.map(drop),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = noted {
        discard(run.store_unread(error));
    }
}

/// See [`ToolRunner::note_late`](crate::runner::ToolRunner::note_late).
pub(in crate::runner) async fn append(
    shared: &Shared,
    run_id: &str,
    party: Option<Party<'_>>,
    question: &Question,
    (kind, decider): (DecisionKind, Option<&Decider>),
) -> Result<(), StoreError> {
    // Run ids can be equal in two tenants, so without a party the decider's tenant selects the call.
    let tenant = decider.and_then(Decider::tenant_id);
    let theirs = |found: Party<'_>| party.map_or(found.1 == tenant, |party| party == found);
    write(shared, late(shared, (run_id, question.call_id(), Some(question)), theirs, (kind, decider)).await?).await
}

/// Records a settlement of a call of a principal and a tenant whose outcome is not unknown.
pub(in crate::runner) async fn append_settlement(
    shared: &Shared,
    run_id: &str,
    party: Party<'_>,
    id: &CallId,
    (kind, decider): (DecisionKind, &Decider),
) -> Result<(), StoreError> {
    let theirs = |found: Party<'_>| found == party;
    write(shared, late(shared, (run_id, id, None), theirs, (kind, Some(decider))).await?).await
}

async fn write(shared: &Shared, late: Option<DecisionRecord>) -> Result<(), StoreError> {
    match late {
        Some(record) => shared.store.append(AuditRecord::from(record)).await,
        None => Ok(()),
    }
}

/// Returns the record of a decision on a call that does not wait. `None` without a decider, if no record of the call
/// has a party that `wanted` accepts, or if the maximum number of refusals is recorded.
async fn late(
    shared: &Shared,
    (run_id, id, question): (&str, &CallId, Option<&Question>),
    wanted: impl Fn(Party<'_>) -> bool,
    (kind, decider): (DecisionKind, Option<&Decider>),
) -> Result<Option<DecisionRecord>, StoreError> {
    if decider.is_none() {
        return Ok(None);
    }
    let (store, of_call) = (&shared.store, RecordFilter::call(run_id, id.clone()));
    let of_party = |record: &AuditRecord| wanted((record.principal().map(|id| &**id), record.tenant().map(|id| &**id)));
    let records = store.records(&of_call).await?.into_iter().map(|sealed| sealed.record);
    let records: Vec<_> = records.filter(of_party).collect();
    let refused = |record: &&AuditRecord| record.as_decision().is_some_and(|decision| decision.refused.is_some());
    if records.iter().filter(refused).count() >= MAX_RECORDED_REFUSALS {
        return Ok(None);
    }
    // A call with a posted decision still waits, and a running call has only the record of its decision.
    let open = store.open_records(&of_call).await?.into_iter().map(AuditRecord::from).filter(of_party);
    let known = records.into_iter().chain(open).last();
    let record = known.and_then(|known| DecisionRecord::late(known, kind, decider, shared.clock.now()));
    Ok(record.map(|record| DecisionRecord { question: question.cloned(), ..record }))
}
