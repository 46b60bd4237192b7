//! Settles a call of unknown outcome: a person states whether the call took effect, or lets its tool reconcile it.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{
    CallId, Decider, Delivered, Outcome, RecordedArguments, ToolExecResult, ToolInvocationRecord, Violation,
};
use crate::component::Reconciled;
use crate::contain::discard;
use crate::redact::Projected;
use crate::runner::gate::deliver;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::ledger::recover;
use crate::runner::run::snapshot::RunSnapshot;
use crate::runner::shared::Shared;
use crate::runner::waiting::{approval, comparison, late};
use crate::runner::{ResumeError, Run, RunOptions, ToolRunner};
use crate::store::effects::{self, Settlement};
use crate::store::pages::Search;
use crate::store::{
    AuditRecord, DecisionKind, DecisionRecord, DecisionRefusal, Document, DocumentKind, Key, Query, Store as _,
    StoreError, StoredUnknown, Transaction, ledger, transact, unsettled,
};

/// See [`Run::settle`].
pub(in crate::runner) async fn settle(
    run: &Run,
    call_id: &CallId,
    outcome: Reconciled<String>,
    decider: &Decider,
) -> Result<ToolExecResult, ResumeError> {
    let kind = kind(&outcome);
    let theirs = |record: &ToolInvocationRecord| run.owns(record.principal.as_deref(), record.tenant.as_deref());
    let found = find(run.shared(), run.id(), call_id, theirs).await.map_err(|error| run.store_failed(error))?;
    let Some((key, unknown)) = found else {
        if !late::note_late(run, (call_id, None), kind, Some(decider)).await {
            let runner = ToolRunner { shared: Arc::clone(run.shared()) };
            refuse_stranger(&runner, run.id(), call_id, (kind, decider)).await;
        }
        return Err(ResumeError::NotWaiting(call_id.clone()));
    };
    settle_found(run, (key, unknown), outcome, decider).await
}

/// As [`settle`], for a call that [`find`] returned with the key of its effect. `run` is the run of the call.
pub(crate) async fn settle_found(
    run: &Run,
    (key, unknown): (Key, StoredUnknown),
    outcome: Reconciled<String>,
    decider: &Decider,
) -> Result<ToolExecResult, ResumeError> {
    let (kind, record) = (kind(&outcome), &unknown.record);
    let call_id = &record.tool_call_id;
    if let Some(error) = barred(run, record, kind, decider).await {
        return Err(error);
    }
    let (settlement, projected) = match outcome {
        Reconciled::TookEffect(value) => match approval::projected(run, &record.name, &value) {
            Ok(projected) => {
                let result = Some(projected.shown.clone());
                (Settlement { result, decider: Some(decider.clone()) }, Some(projected))
            }
            Err(mut stop) => {
                let violations = stop.errors.iter().map(Violation::recorded).collect();
                let refusal = DecisionRefusal { outcome: stop.outcome, mismatch: None, violations };
                note(run, record, kind, decider, Some(refusal)).await;
                stop.outcome = Outcome::ApprovalMismatch;
                let message = "The stated result does not match the tool's output. The outcome is still unknown.";
                return Ok(stop.message(message).result(call_id.clone(), true));
            }
        },
        Reconciled::Prevented => (Settlement { result: None, decider: Some(decider.clone()) }, None),
        Reconciled::Unknown => {
            note(run, record, kind, decider, None).await;
            match recover::reconcile_recorded(run, record, unknown.waited.as_deref()).await {
                Some(Ok(projected)) => {
                    (Settlement { result: Some(projected.shown.clone()), decider: None }, Some(projected))
                }
                Some(Err(())) => (Settlement { result: None, decider: None }, None),
                None => {
                    let outcome = Outcome::OutcomeUnknown;
                    return Ok(ToolExecResult::unfinished(call_id.clone(), outcome, true, outcome.safe_message()));
                }
            }
        }
    };
    let (keys, call) = (effects::settling_keys(&key, &unknown.call), unknown.call.clone());
    let change = move |transaction: &mut Transaction| ledger::settle(transaction, &key, &call, &settlement);
    let is_settled = transact(&run.shared().store, keys.to_vec(), change).await;
    if !is_settled.map_err(|error| run.store_failed(error))? {
        // Another decider has settled the call meanwhile.
        late::note_late(run, (call_id, None), kind, Some(decider)).await;
        return Err(ResumeError::NotWaiting(call_id.clone()));
    }
    Ok(result(run, call_id, &record.name, projected))
}

/// If the decider may not settle the call, records the attempt and returns the error; otherwise `None`.
async fn barred(
    run: &Run,
    record: &ToolInvocationRecord,
    kind: DecisionKind,
    decider: &Decider,
) -> Option<ResumeError> {
    let call_id = &record.tool_call_id;
    let mismatch = comparison::bars_from(run, &record.name, call_id, decider)?;
    let refusal = DecisionRefusal { outcome: Outcome::PolicyDenied, mismatch: Some(mismatch), violations: Vec::new() };
    note(run, record, kind, decider, Some(refusal)).await;
    Some(ResumeError::barred(call_id, mismatch))
}

/// Records and reports a settlement by a decider of another tenant, if a call with these ids exists. The decider learns
/// nothing about the call, so an error of the store is only reported. Every interface for settlements calls this
/// function if the decider's party has no such call.
pub(crate) async fn refuse_stranger(
    runner: &ToolRunner,
    run_id: &str,
    call_id: &CallId,
    (kind, decider): (DecisionKind, &Decider),
) {
    let is_foreign = |record: &ToolInvocationRecord| record.tenant.as_deref() != decider.tenant_id();
    match find(&runner.shared, run_id, call_id, is_foreign).await {
        Ok(Some((_, unknown))) => {
            if let Some(run) = run_of(runner, &unknown, None, &RunOptions::new()) {
                discard(barred(&run, &unknown.record, kind, decider).await);
            }
        }
        Ok(None) => {}
        Err(error) => runner.report("the store failed", error.code(), &error.detail()),
    }
}

/// Returns the kind of a decision with this outcome.
pub(crate) const fn kind(outcome: &Reconciled<String>) -> DecisionKind {
    match outcome {
        Reconciled::TookEffect(_) => DecisionKind::Happened,
        Reconciled::Prevented => DecisionKind::DidNotHappen,
        Reconciled::Unknown => DecisionKind::Reconcile,
    }
}

/// Returns the result of a settled call.
fn result(run: &Run, call_id: &CallId, tool: &str, projected: Option<Projected>) -> ToolExecResult {
    let Some(projected) = projected else { return without_effect(call_id.clone()) };
    let delivered: Delivered = deliver::delivered(projected);
    if let Some(entry) = run.shared().catalog.entry(tool) {
        deliver::read(run, entry, &delivered);
    }
    ToolExecResult::delivered(call_id.clone(), true, delivered)
}

/// Returns the result of a call that was settled as a call without an effect.
pub(in crate::runner) fn without_effect(call_id: CallId) -> ToolExecResult {
    let message = "This call had no effect. It may be made again, as a new call.";
    ToolExecResult::unfinished(call_id, Outcome::Cancelled, true, message)
}

/// Records a refused settlement, or the request for a reconciliation.
async fn note(
    run: &Run,
    record: &ToolInvocationRecord,
    kind: DecisionKind,
    decider: &Decider,
    refusal: Option<DecisionRefusal>,
) {
    let now: Timestamp = run.shared().clock.now();
    let known = AuditRecord::Call(Box::new(record.clone()));
    let Some(mut decision) = DecisionRecord::of_call(known, kind, Some(decider), now) else { return };
    decision.refused = refusal;
    if let RecordedArguments::Unread { .. } = decision.arguments {
        run.digests().await;
    }
    let noted = match decision.refused {
        Some(_) => late::note_refused(run, decision).await,
        None => LedgerClient(run).note(decision).await,
    };
    if let Err(error) = noted {
        discard(run.store_unread(error));
    }
}

/// Finds a call of unknown outcome by its entry in the ledger, and returns it with the key of its effect.
pub(in crate::runner) async fn find(
    shared: &Shared,
    run_id: &str,
    call_id: &CallId,
    wanted: impl Fn(&ToolInvocationRecord) -> bool,
) -> Result<Option<(Key, StoredUnknown)>, StoreError> {
    let calls = Query { scope: Some(run_id.into()), ..Query::new(DocumentKind::Call) };
    let (mut search, mut has_entry, mut is_complete) = (Search::of(calls), false, true);
    while let Some(page) = search.next(&shared.store).await? {
        for listed in page {
            let Document::Call(entry) = listed.document else { continue };
            if entry.record.tool_call_id != *call_id || !wanted(&entry.record) {
                continue;
            }
            has_entry = true;
            let Some(place) = entry.effect_key() else {
                // An earlier version of the library wrote the entry, or the call blocks no other.
                is_complete &= !entry.is_unknown();
                continue;
            };
            let effect = shared.store.document(place.clone()).await?;
            if let Some(unknown) = listed_in(effect, run_id, call_id, &wanted) {
                return Ok(Some((place, unknown)));
            }
        }
    }
    // A store with a size limit may have dropped the entry.
    if search.end().is_ok() && has_entry && is_complete {
        return Ok(None);
    }
    find_in_all(shared, run_id, call_id, wanted).await
}

/// As [`find`], but searches the documents of all effects with an unsettled outcome.
async fn find_in_all(
    shared: &Shared,
    run_id: &str,
    call_id: &CallId,
    wanted: impl Fn(&ToolInvocationRecord) -> bool,
) -> Result<Option<(Key, StoredUnknown)>, StoreError> {
    let mut search = Search::of(unsettled(shared.store.now().await?));
    while let Some(page) = search.next(&shared.store).await? {
        for listed in page {
            if let Some(found) = listed_in(Some(listed.document), run_id, call_id, &wanted) {
                return Ok(Some((listed.key, found)));
            }
        }
    }
    // Fails if a document could not be read, because the call may be in it.
    search.end()?;
    Ok(None)
}

/// Finds a call in the document of its effect.
pub(in crate::runner) fn listed_in(
    document: Option<Document>,
    run_id: &str,
    call_id: &CallId,
    wanted: impl Fn(&ToolInvocationRecord) -> bool,
) -> Option<StoredUnknown> {
    let Document::Effect(effect) = document? else { return None };
    effect
        .unknown
        .into_iter()
        .find(|unknown| *unknown.call.run_id == *run_id && unknown.call.call_id == *call_id && wanted(&unknown.record))
}

/// Returns the run of a call of unknown outcome, under this runner's policy and the policies of the run's snapshot.
/// `None` if there are too many policies.
pub(crate) fn run_of(
    runner: &ToolRunner,
    unknown: &StoredUnknown,
    kept: Option<RunSnapshot>,
    options: &RunOptions,
) -> Option<Run> {
    let record = &unknown.record;
    let options = RunOptions {
        run_id: Some(unknown.call.run_id.clone()),
        tools: unknown.waited.as_ref().and_then(|waited| waited.tools.clone()),
        session: record.session_id.clone(),
        conversation: record.conversation_id.clone(),
        tenant: record.tenant.clone(),
        principal: record.principal.clone(),
        roles: record.roles.clone(),
        attributes: record.attributes.clone(),
        caller: record.caller.clone(),
        user_text: Vec::new(),
        parent: None,
        lease: None,
        ..options.clone()
    };
    recover::start(runner, kept, options)
}
