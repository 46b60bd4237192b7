//! Suspensions: a call is frozen into the store, and opened again once, by the run that it belongs to.

use std::sync::Arc;

use crate::call::{
    ArgumentChangeKind, CallId, Decider, JsonText, Outcome, PendingGraph, Suspension, ToolExecResult, ledger_key,
};
use crate::contain::discard;
use crate::hydrate::Hydrated;
use crate::redact::{changes, summary};
use crate::runner::books::{Claim, Kept, Suspending};
use crate::runner::draft::Refused;
use crate::runner::ending::{Ending, Stop, Suspended};
use crate::runner::open::OpenCall;
use crate::runner::waiting::Purpose;
use crate::runner::{ResumeError, Run, names, settle, telemetry, waiting};
use crate::store::{DecisionKind, DecisionRecord, FrozenArguments, Key, PendingCall, Waiting};
use crate::tool::Digested;

/// What a suspended call waits with.
#[derive(Default)]
pub(super) struct Waits {
    /// What a client is to execute.
    pub(super) prepared: Option<JsonText>,
    /// The call that a graph waits for.
    pub(super) graph: Option<Box<PendingGraph>>,
}

/// Freezes a call into the store, so that it can be resumed later.
pub(super) async fn suspend(
    open: &mut OpenCall,
    hydrated: Hydrated,
    suspension: Suspension,
    Waits { prepared, graph }: Waits,
) -> Result<Ending, Stop> {
    let run = open.run();
    let (shared, options) = (run.shared(), run.options());
    // The typed arguments are built again when the call is resumed.
    let frozen = Arc::clone(&hydrated.frozen);
    drop(hydrated);
    let spec = &frozen.entry.spec;
    let party = (options.tenant.as_deref(), options.principal.as_deref());
    let key = ledger_key(party, run.identity(), &spec.name, &open.draft.id, Digested::digest(&*frozen));
    // Before a call waits for the first time, another process may have run it without asking, or may have ended it.
    let is_new = graph.is_none() && open.attempt.is_none() && run.state().is_continued();
    let begun = is_new.then(|| Key::call(Arc::clone(run.identity()), key));
    let (canonical, effective) = (Arc::clone(frozen.canonical()), frozen.effective());
    let mut changed = frozen.changes.clone();
    changed.extend(changes(ArgumentChangeKind::Defaulted, &canonical, effective, &spec.sensitive));
    // Only a person reads names, and what a graph waits for has its own.
    let unnamed = match (suspension, &graph) {
        (Suspension::Approval, None) => names::unnamed(run, spec, effective),
        _ => Vec::new(),
    };
    let names = names::look_up(run, &open.draft.id, spec.name.as_str(), unnamed).await;
    let now = shared.clock.now();
    let pending = PendingCall {
        version: PendingCall::VERSION,
        call_id: open.draft.id.clone(),
        tool: spec.name.clone(),
        definition_hash: spec.definition_hash,
        arguments: FrozenArguments::new(canonical),
        argument_digest: frozen.hash(),
        shown_arguments: frozen.decided_on(),
        summary: summary(spec, effective, &names),
        names,
        changes: changed,
        principal: options.principal.clone(),
        tenant: options.tenant.clone(),
        roles: options.roles.clone(),
        attributes: options.attributes.clone(),
        tools: options.tools.clone(),
        policy_revision: run.policy().revision(),
        rule: open.draft.rule().map(str::to_owned),
        labels: run.labels(),
        run_id: Arc::clone(run.identity()),
        session_id: options.session.clone(),
        conversation_id: options.conversation.clone(),
        caller: options.caller.clone(),
        repair: open.draft.repair().cloned(),
        started_at: open.draft.started_at,
        created_at: now,
        expires_at: now.saturating_add(shared.approval_ttl).unwrap_or(jiff::Timestamp::MAX),
        suspension,
        prepared: prepared.clone(),
        graph,
    };
    open.draft.asks(&pending);
    let suspended = Suspended { suspension, prepared };
    // A call that has its record does not wait.
    let Some(record) = open.suspended_record(&suspended) else { return Err(Stop::new(Outcome::Cancelled)) };
    let settled = open.held.take().map(|held| held.settled(0));
    // If nobody hears whether it was kept, the record of the call takes it back.
    open.suspending = Some(Box::new(Suspending { call: pending.clone(), settled: settled.clone() }));
    let waiting = Waiting { call: pending, record, idempotency_key: Some(key) };
    let kept = open.run().keep(waiting, begun, open.attempt.as_deref().cloned(), settled).await;
    match (kept, suspension) {
        (Ok(Kept::Waits), _) | (Ok(Kept::Before), Suspension::Approval) => {
            (open.suspending, open.attempt) = (None, None);
            Ok(Ending::Suspended(suspended))
        }
        (Ok(Kept::Begun(Some(record))), _) => {
            open.suspending = None;
            Ok(Ending::Elsewhere(Box::new(settle::result(*record))))
        }
        (Ok(Kept::Begun(None)), _) => {
            open.suspending = None;
            // One whose owner is gone gets its record now.
            let looked = open.run().unfinished_of(&open.draft.id, Some(open.draft.name())).await;
            discard(looked.map_err(|error| telemetry::store_unread(open.run(), error)));
            let (id, unknown) = (open.draft.id.clone(), Outcome::OutcomeUnknown);
            let result = ToolExecResult::unfinished(id, unknown, true, unknown.safe_message());
            Ok(Ending::Elsewhere(Box::new(result)))
        }
        (Ok(Kept::Before), Suspension::Client) => {
            (open.suspending, open.attempt) = (None, None);
            let (id, message) = (open.draft.id.clone(), "This call waits for its client already. Do not repeat it.");
            let result = ToolExecResult::unfinished(id, Outcome::OutcomeUnknown, true, message);
            Ok(Ending::Elsewhere(Box::new(result)))
        }
        (Err(error), _) => {
            telemetry::not_suspended(open.run(), &open.draft, &error);
            discard(error);
            Err(Stop::new(Outcome::Cancelled).message("The call could not be kept for later. It did not run."))
        }
    }
}

/// A suspended call that was found and compared, with what was made of the decision or the answer.
pub(super) enum Reopened<P> {
    /// It waits until it begins to run or ends; the guard gives it its end.
    Open(Box<OpenCall>, P),
    /// It does not fit this run any more, or what was given does not fit the call. It still waits.
    Mismatch(ToolExecResult),
}

/// What is given for a suspended call: by whom, and what for.
pub(super) struct Given<'a> {
    pub(super) purpose: Purpose,
    pub(super) kind: DecisionKind,
    /// `None` if it is nobody's decision.
    pub(super) decider: Option<&'a Decider>,
}

/// Finds a suspended call, compares it with the run that wants it, and reads what is given for it.
///
/// Nothing is taken out of the store yet: that happens in the transaction that begins or ends the call. A decision or an
/// answer that does not fit leaves the call waiting for the next.
pub(super) async fn reopen<P>(
    run: &Run,
    call_id: &str,
    given: Given<'_>,
    prepare: impl FnOnce(&PendingCall, &mut DecisionRecord) -> Result<P, Refused>,
) -> Result<Reopened<P>, ResumeError> {
    let shared = run.shared();
    let id = CallId::new(call_id);
    let Given { purpose, kind, decider } = given;
    let deciding = run.deciding(&id).await;
    let waiting = shared.store.waiting(run.waiting_key(&id)).await.map_err(|error| run.store_failed(error))?;
    let waiting = waiting
        .filter(|waiting| waiting::is_theirs(run, &waiting.call, purpose))
        .ok_or_else(|| ResumeError::NotWaiting(id.clone()))?;
    let mut decision = DecisionRecord::new(&waiting.call, kind, decider, shared.clock.now());
    if let Some(mismatch) = decider.and_then(|decider| run.bars(waiting.call.decided(), decider)) {
        return Err(waiting::barred(run, &waiting, decision, mismatch).await);
    }
    let compared = match purpose {
        Purpose::Resume(_) => waiting::compare(run, &waiting.call),
        Purpose::Close(_) => Ok(()),
    };
    match compared.and_then(|()| prepare(&waiting.call, &mut decision)) {
        Ok(prepared) => {
            let claim = Box::new(Claim { waiting, decision, deciding });
            Ok(Reopened::Open(Box::new(OpenCall::reopen(run.clone(), claim)), prepared))
        }
        Err(refused) => Ok(Reopened::Mismatch(waiting::refuse(run, &waiting, decision, refused).await)),
    }
}
