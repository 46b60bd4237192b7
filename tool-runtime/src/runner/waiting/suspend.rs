//! Suspensions: a call that has to wait for a person or a client is written to the store. When a decision or a result
//! arrives, the call is read, checked against the decision and opened again.

use std::sync::Arc;

use crate::call::{
    ArgumentChange, ArgumentChangeKind, CallId, Decider, DecisionError, JsonText, Names, Outcome, PendingGraph,
    Question, Stated, Suspension, ToolExecResult, World,
};
use crate::contain::discard;
use crate::hydrate::{Frozen, Hydrated};
use crate::redact::{changes, summary};
use crate::runner::gate::draft::Refused;
use crate::runner::gate::ending::{Ending, Stop, Suspended};
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::pending::frozen_call;
use crate::runner::gate::stages;
use crate::runner::ledger::accounts::Settled;
use crate::runner::ledger::client::{Claim, LedgerClient, SuspendOutcome, Suspending};
use crate::runner::ledger::{look_up, orphans, recover};
use crate::runner::report::telemetry;
use crate::runner::waiting::comparison::Purpose;
use crate::runner::waiting::late;
use crate::runner::waiting::{comparison, labels, names, notices, world};
use crate::runner::{ResumeError, Run};
use crate::store::ledger::after;
use crate::store::{
    DecisionKind, DecisionRecord, FrozenArguments, Key, PendingCall, ReplacedArguments, StoreError, UnknownCall,
    Waiting,
};
use crate::tool::Digested;

/// The details of a suspension.
#[derive(Default)]
pub(in crate::runner) struct Waits {
    /// The payload for the client that executes the call.
    pub(in crate::runner) prepared: Option<JsonText>,
    /// The graph, and the call inside the graph that waits. `None` if the call is not a graph.
    pub(in crate::runner) graph: Option<Box<PendingGraph>>,
    /// Earlier calls of the same effect whose outcome is unknown.
    pub(in crate::runner) unknown: Vec<UnknownCall>,
}

/// Writes a call with its frozen arguments to the store, so that it can be resumed later.
pub(in crate::runner) async fn suspend(
    open: &mut OpenCall,
    hydrated: Hydrated,
    suspension: Suspension,
    Waits { prepared, graph, unknown }: Waits,
) -> Result<Ending, Stop> {
    let frozen = Arc::clone(&hydrated.frozen);
    let required = match (&graph, suspension) {
        (Some(graph), _) => graph.required,
        (None, Suspension::Approval) => stages::required_approvals(open.run(), &hydrated),
        (None, Suspension::Client) => 1,
    };
    // The tool has already prepared a client's payload, and the inner call of a graph states its own precondition.
    let stated = match (suspension, &graph) {
        (Suspension::Approval, None) => Box::pin(world::shown(open, &frozen)).await,
        _ => Ok(Vec::new()),
    };
    // When the call is resumed, the typed arguments are built again.
    drop(hydrated);
    let stated = match stated {
        Ok(stated) => stated,
        Err(stop) => return world::unstated(open, &frozen, stop).await,
    };
    let key = open.ledger_key(&frozen);
    // Another process may have run the call without an approval before this process suspends the call.
    let is_new = graph.is_none() && open.attempt.is_none() && open.run().state().is_continued();
    if is_new && let Some(known) = Box::pin(begun_before(open, &frozen)).await {
        return Ok(Ending::Elsewhere(Box::new(known)));
    }
    if suspension == Suspension::Approval && graph.is_none() {
        undecidable(open, &frozen, required).await?;
    }
    let (run, shared) = (open.run(), open.run().shared());
    let begun = is_new.then(|| Key::call(Arc::clone(run.identity()), key));
    // Only approvals show names, and the inner call of a graph shows its own names.
    let is_named = suspension == Suspension::Approval && graph.is_none();
    let Explained { names, summary, changes } = explain(run, &open.draft.id, &frozen, is_named).await;
    let digests = run.digests().await;
    let now = shared.clock.now();
    // The call of a graph and its inner call have the same approvals.
    let approvals = graph.as_ref().map(|graph| graph.approvals.clone()).unwrap_or_default();
    let mut pending = PendingCall {
        record_digest: Some(digests.of(frozen.argument_digest())),
        names: names.shown,
        changes,
        required,
        expires_at: after(now, shared.approval_ttl),
        suspension,
        prepared: prepared.clone(),
        graph,
        ..frozen_call(open, &frozen, now)
    };
    pending.explain(summary, World { stated, cut: names.cut, ..World::default() });
    pending.ask_about(unknown);
    pending.approvals = approvals;
    open.draft.set_explanation(&pending);
    let notices = notices::of_waiting(open.run(), &pending).await;
    let suspended = Suspended { question: Box::new(pending.question()), suspension, prepared };
    // `None` if the record is already written. Then the call must not be suspended.
    let Some(record) = open.suspended_record(&suspended) else { return Err(Stop::new(Outcome::Cancelled)) };
    let settled = open.held.take().map(|held| held.settled(0));
    // If the store's answer is lost, the write of the call's record withdraws the suspension.
    open.suspending = Some(Box::new(Suspending { call: pending.clone(), settled: settled.clone() }));
    let waiting = Waiting { call: pending, record, idempotency_key: Some(key), notices };
    let kept = keep(open, waiting, begun.clone(), settled, suspension).await;
    kept_for_later(open, (kept, suspension), suspended, begun).await
}

/// Converts the store's answer to a suspension to the ending of the call. `begun` is the key under which another
/// process may have begun the call.
async fn kept_for_later(
    open: &mut OpenCall,
    kept: (Result<SuspendOutcome, StoreError>, Suspension),
    mut suspended: Suspended,
    begun: Option<Key>,
) -> Result<Ending, Stop> {
    match kept {
        (Ok(kept @ (SuspendOutcome::Waits | SuspendOutcome::Before)), Suspension::Approval)
        | (Ok(kept @ SuspendOutcome::Waits), _) => {
            if let Some(suspending) = &open.suspending {
                labels::share_with(open.run(), &suspending.call).await;
            }
            (open.suspending, open.attempt) = (None, None);
            // If another process suspended the call first, return its question.
            if matches!(kept, SuspendOutcome::Before)
                && let Ok(Some(before)) = open.run().pending(&open.draft.id).await
            {
                open.draft.copy_from_pending(&before);
                *suspended.question = before.question();
            }
            Ok(Ending::Suspended(suspended))
        }
        (Ok(SuspendOutcome::Replaced), _) => {
            open.suspending = None;
            Ok(Ending::Elsewhere(Box::new(stages::replaced(open).await)))
        }
        (Ok(SuspendOutcome::Begun(Some(record))), _) => {
            open.suspending = None;
            Ok(Ending::Elsewhere(Box::new(look_up::result(*record))))
        }
        (Ok(SuspendOutcome::Begun(None)), _) => {
            open.suspending = None;
            // If the process of the call is gone, this process takes the call over.
            let known = match &begun {
                Some(key) => recover::go_on_begun(open.run(), &open.draft.id, key).await.unwrap_or_default().flatten(),
                None => None,
            };
            let result = known.unwrap_or_else(|| open.unknown());
            Ok(Ending::Elsewhere(Box::new(result)))
        }
        (Ok(SuspendOutcome::Before), Suspension::Client) => {
            (open.suspending, open.attempt) = (None, None);
            let (id, message) = (open.draft.id.clone(), "This call waits for its client already. Do not repeat it.");
            let result = ToolExecResult::unfinished(id, Outcome::OutcomeUnknown, true, message);
            Ok(Ending::Elsewhere(Box::new(result)))
        }
        // `open.suspending` stays set: the write of the call's record then books the used amount, because the refused
        // suspension did not.
        (Ok(SuspendOutcome::Refused), _) => {
            leave_graph(open).await;
            Err(Stop::new(Outcome::Cancelled).message("The call could not wait for an approval. It did not run."))
        }
        (Err(error), _) => {
            telemetry::not_suspended(open.run(), &open.draft, &error);
            discard(error);
            leave_graph(open).await;
            Err(Stop::new(Outcome::Cancelled).message("The call could not be kept for later. It did not run."))
        }
    }
}

/// Returns the result of a call that began under another definition of its tool. `None` if there is no such call, or if
/// the store cannot be read. The caller then suspends the call.
async fn begun_before(open: &OpenCall, frozen: &Frozen) -> Option<ToolExecResult> {
    let known = open.begun_as_another(frozen).await;
    known.map_err(|error| discard(open.run().store_unread(error))).ok().flatten()
}

/// Denies a call that needs more approvals than there are people who may decide on it. Does not deny a call that
/// already waits; the process that gets a decision on that call checks the decider.
async fn undecidable(open: &OpenCall, frozen: &Frozen, required: u32) -> Result<(), Stop> {
    let run = open.run();
    if !run.is_undecidable(frozen.entry.spec.name.as_str(), required)
        || !matches!(run.pending(&open.draft.id).await, Ok(None))
    {
        return Ok(());
    }
    Err(Stop::new(Outcome::PolicyDenied).message(format!(
        "This call needs {required} approvals, and the policy names fewer people who may decide on it. It did not run."
    )))
}

/// Closes the inner calls of a graph that cannot wait, so that no person has to decide on them.
async fn leave_graph(open: &OpenCall) {
    let graph = open.suspending.as_ref().and_then(|suspending| suspending.call.graph.clone());
    Box::pin(orphans::leave(open.run(), &open.draft.id, graph)).await;
}

/// The texts that explain a call to a person.
struct Explained {
    names: Names,
    summary: Option<String>,
    changes: Vec<ArgumentChange>,
}

/// Returns the explanation of a call with these arguments: the names of values, the author's sentence, and the changes
/// to the model's arguments.
async fn explain(run: &Run, id: &CallId, frozen: &Frozen, is_named: bool) -> Explained {
    let (spec, effective) = (&frozen.entry.spec, frozen.effective());
    let mut changed = frozen.treatment.changes.clone();
    changed.extend(changes(ArgumentChangeKind::Defaulted, frozen.canonical(), effective, &spec.sensitive));
    let unnamed = if is_named { names::unnamed(run, spec, effective) } else { Vec::new() };
    let names = names::look_up(run, id, spec.name.as_str(), unnamed).await;
    Explained { summary: summary(spec, effective, &names.shown), names, changes: changed }
}

/// Returns the waiting call with the edited arguments of a decider and the statements about them. The call has a new
/// question and no approvals.
pub(in crate::runner) async fn replaced(
    run: &Run,
    call: &PendingCall,
    frozen: &Frozen,
    stated: Vec<Stated>,
    required: u32,
) -> PendingCall {
    let explained = explain(run, &call.call_id, frozen, true).await;
    let (of_model, sensitive) = (call.of_model().clone(), &frozen.entry.spec.sensitive);
    let mut changed = changes(ArgumentChangeKind::Edited, of_model.as_str(), frozen.canonical(), sensitive);
    changed.extend(explained.changes);
    let times = call.replaced.as_ref().map_or(1, |replaced| replaced.times.saturating_add(1));
    let mut replaced = PendingCall {
        arguments: FrozenArguments::new(Arc::clone(frozen.canonical())),
        argument_digest: frozen.argument_digest(),
        record_digest: Some(run.digests().await.of(frozen.argument_digest())),
        shown_arguments: frozen.decided_on(),
        names: explained.names.shown,
        changes: changed,
        required,
        replaced: Some(Box::new(ReplacedArguments { arguments: of_model, times })),
        // The edited arguments may have the same effect key, so the question still names the calls of unknown outcome.
        ..call.clone()
    };
    // Keep the count of new questions. If an edit reset it, a precondition that always changes could cause questions
    // without end.
    let renewed = call.world.as_deref().map_or(0, |world| world.renewed);
    replaced.explain(explained.summary, World { stated, cut: explained.names.cut, renewed, ..World::default() });
    replaced
}

/// Writes a call that is about to wait. The same transaction writes the document with which an MCP server finds the
/// call for its client.
async fn keep(
    open: &OpenCall,
    waiting: Waiting,
    begun: Option<Key>,
    settled: Option<Settled>,
    suspension: Suspension,
) -> Result<SuspendOutcome, StoreError> {
    let server = open.client.as_ref().and_then(|client| client.server.clone());
    let server = server.filter(|_| suspension == Suspension::Approval);
    let entry = match &server {
        None => Ok(Some(None)),
        Some(server) => server.entry(open.run(), &waiting.call).await.map(|entry| entry.map(Some)),
    };
    let kept = match entry {
        Ok(Some(entry)) => {
            LedgerClient(open.run()).keep(waiting, entry, begun, open.attempt.as_deref().cloned(), settled).await
        }
        Ok(None) => Ok(SuspendOutcome::Refused),
        Err(error) => Err(error),
    };
    if let Some(server) = &server {
        server.entered(match &kept {
            Ok(SuspendOutcome::Waits | SuspendOutcome::Before) => Some(true),
            Ok(SuspendOutcome::Refused) => Some(false),
            _ => None,
        });
    }
    kept
}

/// A suspended call that was compared with the run, and the parsed decision or result.
pub(in crate::runner) enum Reopened<P> {
    /// The call matches. It waits until it begins or ends.
    Open(Box<OpenCall>, P),
    /// The result of a refusal: the call does not match this run, or the decision or result does not match the call.
    /// The call still waits.
    Mismatch(ToolExecResult),
}

/// A decision on a suspended call, or its client's result, with the author and the purpose.
pub(in crate::runner) struct Given<'a> {
    pub(in crate::runner) purpose: Purpose,
    pub(in crate::runner) kind: DecisionKind,
    /// The person who decides. `None` if no person does, as for an expiry or a client's result.
    pub(in crate::runner) decider: Option<&'a Decider>,
    /// The question that the decision answers. `None` for a client's result, which answers no question.
    pub(in crate::runner) question: Option<&'a Question>,
}

/// Reads a suspended call of the run. Its suspension and its principal are not checked.
pub(in crate::runner) async fn read(run: &Run, id: &CallId) -> Result<Option<Waiting>, ResumeError> {
    run.shared().store.waiting(run.waiting_key(id)).await.map_err(|error| run.store_failed(error))
}

/// Finds a suspended call and checks the decider and the question. Records refusals. Returns
/// - `Ok(Ok(_))`: the waiting call with the record of the decision,
/// - `Ok(Err(result))`: the refusal of a decision on another question,
/// - `Err`: the store failed, the call does not wait, or the decider may not decide.
pub(in crate::runner) async fn checked_decision(
    run: &Run,
    id: &CallId,
    given: &Given<'_>,
) -> Result<Result<(Waiting, DecisionRecord), ToolExecResult>, ResumeError> {
    asked_of(run, id, read(run, id).await?, given).await
}

/// As [`checked_decision`], for the result of [`read`].
pub(in crate::runner) async fn asked_of(
    run: &Run,
    id: &CallId,
    waiting: Option<Waiting>,
    given: &Given<'_>,
) -> Result<Result<(Waiting, DecisionRecord), ToolExecResult>, ResumeError> {
    let (shared, purpose) = (run.shared(), given.purpose);
    let Some(waiting) = waiting.filter(|waiting| comparison::is_theirs(run, &waiting.call, purpose)) else {
        late::note_late(run, (id, given.question), given.kind, given.decider).await;
        return Err(ResumeError::NotWaiting(id.clone()));
    };
    // The record of the decision may contain a digest of the arguments, so the digest key is read here.
    run.digests().await;
    let decision = DecisionRecord {
        question: given.question.cloned(),
        ..DecisionRecord::new(&waiting.call, given.kind, given.decider, shared.clock.now())
    };
    let is_other = given.question.is_some_and(|question| *question != waiting.call.question());
    let barred = given.decider.and_then(|decider| comparison::bars(run, &waiting.call, decider));
    // A decision on another question is refused as such, even if the decider may not decide. Only a decider of another
    // tenant does not learn that the call waits.
    if let Some(mismatch) = barred.filter(|mismatch| !is_other || *mismatch == DecisionError::DeciderTenant) {
        return Err(comparison::barred(run, &waiting, decision, mismatch).await);
    }
    if is_other {
        let refused = comparison::refused(&waiting.call, DecisionError::Question);
        return Ok(Err(comparison::refuse(run, &waiting, decision, refused).await));
    }
    if let Some(decider) = given.decider
        && given.kind == DecisionKind::Approved
        && waiting.call.needs_others_than(decider)
    {
        return Err(comparison::barred(run, &waiting, decision, DecisionError::SameDecider).await);
    }
    Ok(Ok((waiting, decision)))
}

/// Finds a suspended call, compares it with the run that finishes it, and reads the decision or result with `prepare`.
///
/// The call stays in the store until the transaction that begins or ends it. If the decision or result does not match,
/// the call still waits.
pub(in crate::runner) async fn reopen<P>(
    run: &Run,
    id: &CallId,
    given: Given<'_>,
    prepare: impl FnOnce(&PendingCall, &mut DecisionRecord) -> Result<P, Refused>,
) -> Result<Reopened<P>, ResumeError> {
    let lock = run.decision_locks().lock(id).await;
    let (waiting, mut decision) = match checked_decision(run, id, &given).await? {
        Ok(asked) => asked,
        Err(refused) => return Ok(Reopened::Mismatch(refused)),
    };
    let purpose = given.purpose;
    let compared = match purpose {
        Purpose::Resume(_) => comparison::compare(run, &waiting.call),
        Purpose::Close(_) => Ok(()),
    };
    match compared.and_then(|()| prepare(&waiting.call, &mut decision)) {
        Ok(prepared) => {
            let claim = Box::new(Claim { waiting, decision, lock });
            Ok(Reopened::Open(Box::new(OpenCall::reopen(run.clone(), claim)), prepared))
        }
        Err(refused) => Ok(Reopened::Mismatch(comparison::refuse(run, &waiting, decision, refused).await)),
    }
}
