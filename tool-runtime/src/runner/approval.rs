//! Resuming a call that waited for a person: everything is checked again, and it happens once.

use std::fmt;
use std::sync::Arc;

use crate::call::{CallId, Outcome, ToolCall, ToolExecResult, ToolInvocationRecord};
use crate::hydrate::Hydrated;
use crate::json;
use crate::runner::open::OpenCall;
use crate::runner::stages::{self, Permit};
use crate::runner::stop::{Ended, Stop};
use crate::runner::{Run, exec};
use crate::store::{FrozenArguments, PENDING_VERSION, PendingCall, RecordFilter, StoreError, Suspension};

/// What a person decides of a call that waits.
#[derive(Clone, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// It may run as it is.
    Approve,
    /// It may run with these arguments, a JSON object as text. They are validated and decided again.
    ApproveEdited(String),
    /// It does not run; the model reads the message.
    Deny(Option<String>),
    /// It does not run; this JSON value is the answer in the tool's place, projected as the tool's own would be.
    Respond(String),
    /// Nobody decided in time.
    Expire,
}

impl fmt::Debug for ApprovalDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Approve => "Approve",
            Self::ApproveEdited(_) => "ApproveEdited(..)",
            Self::Deny(_) => "Deny(..)",
            Self::Respond(_) => "Respond(..)",
            Self::Expire => "Expire",
        })
    }
}

/// No call of this id waits in this run, or the store could not be asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotPending {
    /// It never waited, or somebody finished it already.
    Unknown,
    /// The store failed.
    Store(StoreError),
}

impl NotPending {
    /// A stable word: `not_pending` or the store's own.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown => "not_pending",
            Self::Store(error) => error.code(),
        }
    }
}

impl fmt::Display for NotPending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no call of this id waits; it may have been finished already"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotPending {}

impl Run {
    /// Finishes a call that waits for an approval, once: a second decision finds nothing to decide.
    ///
    /// # Errors
    /// Nothing waits under this id. A decision that comes too late or does not fit is a result, not an error.
    pub async fn resume(&self, call_id: &str, decision: ApprovalDecision) -> Result<ToolExecResult, NotPending> {
        let (mut open, pending) = reopen(self, call_id, Some(Suspension::Approval)).await?;
        let ended = decided(&mut open, pending, decision).await;
        Ok(open.finish(ended).await)
    }
}

/// Claims a waiting call and opens its record again.
pub(super) async fn reopen(
    run: &Run,
    call_id: &str,
    suspension: Option<Suspension>,
) -> Result<(OpenCall, PendingCall), NotPending> {
    let store = &run.0.shared.store;
    let id = CallId::new(call_id);
    // Looked at first, so that a call which waits for somebody else stays in the store.
    let waiting = store.pending(run.id(), &id).await.map_err(NotPending::Store)?;
    if waiting.is_none_or(|waiting| suspension.is_some_and(|suspension| waiting.suspension != suspension)) {
        return Err(NotPending::Unknown);
    }
    let filter = RecordFilter::call(run.id(), id.clone());
    let record = store.open_records(&filter).await.map_err(NotPending::Store)?.pop();
    let pending = store.claim(run.id(), &id).await.map_err(NotPending::Store)?.ok_or(NotPending::Unknown)?;
    // No await from here on: a future that is dropped has not claimed, or leaves a record.
    let record: ToolInvocationRecord = record.ok_or(NotPending::Unknown)?;
    Ok((OpenCall::resume(run.clone(), &record), pending))
}

async fn decided(open: &mut OpenCall, pending: PendingCall, decision: ApprovalDecision) -> Result<Ended, Stop> {
    if pending.is_expired(open.run.0.shared.clock.now()) {
        return Err(Stop::new(Outcome::ApprovalExpired));
    }
    match decision {
        ApprovalDecision::Expire => Err(Stop::new(Outcome::ApprovalExpired)),
        ApprovalDecision::Deny(message) => {
            let stop = Stop::new(Outcome::ApprovalDenied);
            Err(match message {
                Some(message) => stop.message(message),
                None => stop,
            })
        }
        ApprovalDecision::Respond(value) => respond(open, &pending, &value),
        ApprovalDecision::Approve => {
            let frozen = pending.arguments.as_str().to_owned();
            let permit = permit(open, &pending, frozen)?;
            exec::from_permit(open, permit).await
        }
        ApprovalDecision::ApproveEdited(arguments) => {
            let permit = permit(open, &pending, arguments)?;
            exec::from_permit(open, permit).await
        }
    }
}

/// Takes the arguments through the whole first half of the gate again.
fn permit(open: &mut OpenCall, pending: &PendingCall, arguments: String) -> Result<Permit, Stop> {
    let edited = arguments != pending.arguments.as_str();
    let call = ToolCall::text(pending.call_id.clone(), pending.tool.as_str(), arguments);
    let admitted = stages::admit(open, &call)?;
    same(open, pending)?;
    let hydrated = stages::hydrate(open, &admitted, call)?;
    if !edited && hydrated.digest() != pending.argument_digest {
        return Err(Stop::new(Outcome::ApprovalMismatch));
    }
    stages::freeze(open, &hydrated);
    stages::permit_approved(open, hydrated)
}

/// What was approved is still what would run, for the same people under the same policy.
fn same(open: &OpenCall, pending: &PendingCall) -> Result<(), Stop> {
    let options = &open.run.0.options;
    let same = open.definition_hash == Some(pending.definition_hash)
        && options.principal == pending.principal
        && options.tenant == pending.tenant
        && open.run.0.shared.policy.revision() == pending.policy_revision;
    if same { Ok(()) } else { Err(Stop::new(Outcome::ApprovalMismatch)) }
}

/// A person answers in the tool's place. The answer is a value like the tool's own: it is checked and projected.
fn respond(open: &mut OpenCall, pending: &PendingCall, value: &str) -> Result<Ended, Stop> {
    same_definition(open, pending)?;
    let shared = &open.run.0.shared;
    let entry = shared.catalog.entry(pending.tool.as_str()).ok_or_else(|| Stop::new(Outcome::ApprovalMismatch))?;
    let projector = match &entry.answer {
        Some(answer) => Some(&answer.projector),
        None => shared.compiled.projector(entry),
    };
    let projector = projector.ok_or_else(|| Stop::new(Outcome::RedactionFailed))?;
    let invalid = |_| Stop::new(Outcome::OutputInvalid).message("The answer given in the tool's place is not valid.");
    let limits = json::Limits::UNBOUNDED;
    let tree = json::parse_value(value, &limits).map_err(invalid)?;
    let limit = shared.policy.limits_of(pending.tool.as_str()).result_bytes;
    let projected = projector.project(&tree, limit).map_err(|error| stages::unprojected(&error))?;
    stages::remember(&open.run, projected.model.as_ref().unwrap_or(&projected.shown).get());
    Ok(Ended { shown: projected.shown, model: projected.model, warning: None })
}

fn same_definition(open: &OpenCall, pending: &PendingCall) -> Result<(), Stop> {
    let current = open.run.0.shared.catalog.entry(pending.tool.as_str()).map(|entry| entry.spec.definition_hash);
    if current == Some(pending.definition_hash) { Ok(()) } else { Err(Stop::new(Outcome::ApprovalMismatch)) }
}

/// Freezes a call into the store, so that it can go on later. The returned stop tells the model that it waits.
pub(super) async fn suspend(
    open: &mut OpenCall,
    hydrated: Hydrated,
    suspension: Suspension,
    prepared: Option<Arc<serde_json::value::RawValue>>,
) -> Stop {
    let shared = Arc::clone(&open.run.0.shared);
    let options = &open.run.0.options;
    let now = shared.clock.now();
    let spec = Arc::clone(&hydrated.entry.spec);
    let pending = PendingCall {
        version: PENDING_VERSION,
        call_id: open.record_id().clone(),
        tool: spec.name.clone(),
        definition_hash: spec.definition_hash,
        arguments: FrozenArguments::new(Arc::clone(&hydrated.frozen)),
        argument_digest: hydrated.digest,
        shown_arguments: Arc::clone(&hydrated.masked),
        principal: options.principal.clone(),
        tenant: options.tenant.clone(),
        policy_revision: shared.policy.revision(),
        rule: open.decision.as_ref().map(|decision| decision.rule.to_string()),
        labels: open.run.state().labels().to_vec(),
        run_id: Arc::clone(&open.run.0.id),
        session_id: options.session.clone(),
        conversation_id: options.conversation.clone(),
        caller: options.caller.clone(),
        repair: open.repair.clone(),
        started_at: now,
        created_at: now,
        expires_at: now.saturating_add(shared.approval_ttl).unwrap_or(jiff::Timestamp::MAX),
        suspension,
        prepared: prepared.clone(),
    };
    let outcome = match suspension {
        Suspension::Approval => Outcome::ApprovalRequired,
        Suspension::Client => Outcome::ClientRequired,
    };
    drop(hydrated);
    match shared.store.suspend(pending).await {
        Ok(()) => {
            let mut stop = Stop::new(outcome);
            stop.prepared = prepared;
            stop
        }
        Err(error) => {
            tracing::error!(tool = %spec.name, run = %open.run.0.id, code = error.code(), "a call could not be suspended");
            Stop::new(Outcome::Cancelled).message("The call could not be kept for later. It did not run.")
        }
    }
}
