//! Effects: the key of a call's effect, which at most one call holds at a time, and the result of a call whose effect
//! another call already caused.

use std::sync::Arc;

use crate::call::{Caller, Delivered, Intervention, Outcome};
use crate::contain::discard;
use crate::hydrate::Frozen;
use crate::media::Attachments;
use crate::redact::{EffectKey, effect_key};
use crate::runner::Run;
use crate::runner::gate::deliver;
use crate::runner::gate::draft::{Refused, Shown};
use crate::runner::gate::ending::{Ending, Stop};
use crate::runner::gate::open::OpenCall;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::waiting::comparison;
use crate::store::effects::{Blocked, EffectClaim, OnceClaim};
use crate::store::{DecisionRecord, EffectHolder, Key, UnknownCall};
use crate::tool::{Digested, Execution, OnceScope, ToolEffect, is_graph};

/// The tool code of a call that is refused because another call with the same effect key is running.
const IN_PROGRESS: &str = "in_progress";

/// Whether the call has no effect that could happen twice.
pub(super) fn has_none(open: &OpenCall, frozen: &Frozen) -> bool {
    let spec = &frozen.entry.spec;
    let effect = open.draft.effect().unwrap_or(spec.effect);
    effect == ToolEffect::ReadOnly || spec.execution == Execution::Client
}

/// Returns the claim of a call on the key of its effect, with the earlier calls that the approver of this call saw.
/// `None` for a call without an effect, for an `idempotent` tool without `once`, and for a graph, whose inner calls
/// have their own keys.
pub(super) fn claim(open: &mut OpenCall, frozen: &Frozen, shown: Vec<UnknownCall>) -> Option<EffectClaim> {
    let spec = &frozen.entry.spec;
    let name = spec.name.as_str();
    if has_none(open, frozen) || is_graph(name) || (spec.idempotent && spec.once.is_none()) {
        return None;
    }
    let run = open.run().clone();
    let (tenant, principal) = (run.options().tenant.as_deref(), run.options().principal.as_deref());
    let Some(once) = &spec.once else {
        let key = Key::twins(tenant, principal, name, Digested::effective_digest(frozen));
        return Some(EffectClaim { key, shown, once: None });
    };
    let EffectKey { parts, shown: text } = effect_key(once, frozen.effective());
    open.draft.set_effect_key(text);
    let scope: &[_] = match once.scope {
        OnceScope::Tenant => &[tenant],
        OnceScope::Principal => &[tenant, principal],
        OnceScope::Run => &[tenant, principal, Some(outermost(&run))],
    };
    let key = Key::once(scope, &parts);
    Some(EffectClaim { key, shown, once: Some(OnceClaim { keep: once.keep }) })
}

/// Returns the id of the outermost run. Graphs cannot nest, so the caller is the outermost run; a process that took the
/// call over has no parent run, only the caller's id.
fn outermost(run: &Run) -> &str {
    match &run.options().caller {
        Caller::Graph { run, .. } => run,
        Caller::Direct => run.id(),
    }
}

/// The next step of a call that is about to suspend, after the search for other calls of the same effect.
pub(in crate::runner) enum Looked {
    /// The call ends with the result of an earlier call.
    Ends(Ending),
    /// The call suspends, and its question names these earlier calls.
    Asks(Vec<UnknownCall>),
}

/// Searches for other calls of the effect before a call suspends for an approval. A person then never has to decide on
/// an effect that another call already caused or is causing now.
///
/// Only calls with an effect key (`once`) need the search. Without a key, a call that ended or runs blocks no other.
pub(in crate::runner) async fn look(open: &mut OpenCall, frozen: &Frozen) -> Result<Looked, Stop> {
    let claim = if frozen.entry.spec.once.is_some() { claim(open, frozen, Vec::new()) } else { None };
    let Some(claim) = claim else { return Ok(Looked::Asks(Vec::new())) };
    let run = open.run().clone();
    let key = Key::call(Arc::clone(run.identity()), open.ledger_key(frozen));
    let keys = (key, run.waiting_key(&open.draft.id));
    match LedgerClient(&run).look_for_others(claim, keys).await {
        Ok(None) => Ok(Looked::Asks(Vec::new())),
        Ok(Some(Blocked::Had(holder))) => earlier_result(open, *holder).map(Looked::Ends),
        Ok(Some(Blocked::Runs)) => Err(in_progress()),
        Ok(Some(Blocked::Unknown(earlier))) => Ok(Looked::Asks(earlier.named())),
        Err(error) => {
            // If an earlier call blocks this one, `enter` finds it later.
            discard(run.store_unread(error));
            Ok(Looked::Asks(Vec::new()))
        }
    }
}

/// Returns the stop of a call whose effect another call is causing now.
pub(super) fn in_progress() -> Stop {
    let message =
        "Another call is causing this effect now. This call did not run. Make it again later to get the result.";
    let mut stop = Stop::new(Outcome::Cancelled).message(message);
    stop.tool_code = Some(IN_PROGRESS.to_owned());
    stop
}

/// Returns the result of an approval of a call whose effect another call is causing now. The approval is recorded as
/// refused. The call still waits with its earlier approvals, so the person can decide again.
pub(super) async fn still_waits(open: &mut OpenCall) -> Ending {
    let run = open.run().clone();
    let Some(claim) = open.claim.as_deref() else {
        return Ending::Refused(Box::new(in_progress().result(open.draft.id.clone(), false)));
    };
    let message = "Another call is causing this effect now. The call still waits: decide again once the other call has \
                   ended.";
    let refused = Refused {
        stop: in_progress().message(message),
        shown: Shown::Masked(claim.waiting.call.shown_arguments.clone()),
    };
    // This approval does not count, so its record lists no approvals of other deciders.
    let decision = DecisionRecord { approvals: None, earlier: Vec::new(), ..claim.decision.clone() };
    Ending::Refused(Box::new(Box::pin(comparison::refuse(&run, &claim.waiting, decision, refused)).await))
}

/// Returns the result of the earlier call that already caused this effect.
pub(super) fn earlier_result(open: &mut OpenCall, holder: EffectHolder) -> Result<Ending, Stop> {
    let EffectHolder { run_id, call_id, record, .. } = holder;
    let Some(record) = record.map(|record| *record) else { return Err(Stop::new(Outcome::Cancelled)) };
    if *record.name != *open.draft.name() {
        // The policy may hide the result of another tool, and this tool's output has another schema.
        let message = "An earlier call of another tool already caused this effect. This call did not run.";
        return Err(Stop::new(Outcome::Cancelled).message(message));
    }
    let entry = open.run().shared().catalog.entry(&record.name);
    if record.definition_hash != entry.map(|entry| entry.spec.definition_hash) {
        // The recorded result was projected with the allowlist of the earlier definition.
        let message =
            "An earlier call of another version of this tool already caused this effect. This call did not run.";
        return Err(Stop::new(Outcome::Cancelled).message(message));
    }
    open.draft.intervened(Intervention::Earlier { run_id, call_id });
    match record.result {
        Some(shown) if record.outcome == Outcome::Ok => {
            // A record contains no file bytes.
            let attachments = Attachments::recorded(record.media.len(), record.left_out);
            let delivered = Delivered { attachments, ..Delivered::shown(shown) };
            if let Some(entry) = open.run().shared().catalog.entry(&record.name) {
                deliver::read(open.run(), entry, &delivered);
            }
            Ok(Ending::Delivered(delivered))
        }
        // A purge or an erasure removed the result.
        None if record.outcome == Outcome::Ok => {
            let message =
                "An earlier call already caused this effect, but its result has been deleted. This call did not run.";
            Err(Stop::new(Outcome::Cancelled).message(message))
        }
        _ => {
            let message = record.safe_message.unwrap_or_else(|| record.outcome.safe_message().to_owned());
            Err(Stop::new(record.outcome).message(message))
        }
    }
}
