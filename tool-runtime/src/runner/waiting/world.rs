//! Preconditions: what a waiting call depends on is read when the call is suspended, and again before it begins.
//!
//! Looked-up names are compared in the same way. A difference suspends the call anew, and the decision does not count.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{
    Bounds, Cause, DecisionError, Difference, NamedArgument, Outcome, RecordedWorld, Stated, ToolExecResult, World,
    context_of,
};
use crate::capability::{Capabilities, Source};
use crate::component::{Bindings, Precondition};
use crate::contain::{attempted, caught, discard};
use crate::error::ToolError;
use crate::hydrate::{Frozen, Hydrated};
use crate::json::{self, Limits, Tree};
use crate::redact::{MASK, summary};
use crate::registration::{Instance, Stating};
use crate::runner::ResumeError;
use crate::runner::gate::ending::{Ending, MAX_CODE_BYTES, MAX_MESSAGE_BYTES, Stop, Suspended};
use crate::runner::gate::invoke;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::{self, Connections};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::report::telemetry;
use crate::runner::waiting::names;
use crate::store::{PendingCall, Waiting};
use crate::text::sentence;
use crate::tool::{Digested, ToolEffect, ToolSpec};

/// How many approvals of one call may not count. The next one that does not ends the call, so that a world that changes
/// all the time does not ask for ever.
const MOST: u8 = 3;

/// The code of a call that ends because what it depends on changed after each approval.
const CHANGED: &str = "world_changed";

/// The end of a call that is about to wait and whose precondition failed. A call that waits already keeps its question.
pub(in crate::runner) async fn unstated(open: &mut OpenCall, frozen: &Frozen, stop: Stop) -> Result<Ending, Stop> {
    let pending = open.run().pending(&open.draft.id).await;
    match pending.map_err(|error| discard(open.run().store_unread(error))) {
        Ok(Some(pending)) if pending.tool == frozen.entry.spec.name && pending.argument_digest == frozen.hash() => {
            open.draft.asks(&pending);
            let question = Box::new(pending.question());
            Ok(Ending::Suspended(Suspended { question, suspension: pending.suspension, prepared: None }))
        }
        _ => Err(stop),
    }
}

/// Returns the statements about a call that is about to wait. Empty for a tool without a precondition.
pub(in crate::runner) async fn shown(open: &OpenCall, hydrated: &mut Hydrated) -> Result<Vec<Stated>, Stop> {
    let (frozen, instance) = hydrated.parts();
    if !frozen.entry.behaviour.may_state() {
        discard(instance);
        return Ok(Vec::new());
    }
    // A tool that reconciled another call has used its arguments up.
    let again = || stages::read_again(open.run(), &frozen.entry, &open.draft.id, frozen.canonical()).ok();
    let instance = instance.or_else(|| again().and_then(|mut hydrated| hydrated.parts().1));
    stated(open, frozen, instance, None).await
}

/// Compares the world with the one that the approver was shown, immediately before the approved call begins. `None` if
/// it is the same; otherwise the call waits with another question, or ends.
pub(in crate::runner) async fn changed(open: &mut OpenCall, bound: &Connections) -> Result<Option<Ending>, Stop> {
    let Some(claim) = open.claim.as_deref() else { return Ok(None) };
    let run = open.run().clone();
    let pending = claim.waiting.call.clone();
    let Some(entry) = run.shared().catalog.entry(pending.tool.as_str()).cloned() else { return Ok(None) };
    let may_state = entry.behaviour.may_state();
    if pending.graph.is_some() || !(may_state || pending.world.is_some() || !pending.names.is_empty()) {
        return Ok(None);
    }
    // A person may have edited the arguments. The world is that of the arguments that were shown.
    let asked = stages::read_again(&run, &entry, &pending.call_id, pending.arguments());
    let (found, effective) = match asked {
        Ok(mut asked) => {
            let (frozen, instance) = asked.parts();
            let found = if may_state { stated(open, frozen, instance, Some(bound)).await } else { Ok(Vec::new()) };
            (found, Some(frozen.effective().to_owned()))
        }
        Err(stop) => (Err(stop), None),
    };
    let found = match found {
        Err(stop) if stop.outcome == Outcome::Cancelled => return Err(stop),
        found => found,
    };
    let names = match &effective {
        Some(effective) if !pending.names.is_empty() => {
            let unnamed = names::unnamed(&run, &entry.spec, effective);
            names::look_up(&run, &pending.call_id, pending.tool.as_str(), unnamed).await
        }
        _ => Vec::new(),
    };
    let was = pending.world.as_deref().map_or(&[][..], |world| &world.stated);
    let message = "What the call depends on has changed since it was shown, or could not be read. The call did not run, \
                   and waits with a new question.";
    let mut stop = Stop::mismatch(DecisionError::World).message(message);
    let (differences, begun) = match &found {
        Ok(found) => {
            let mut differences = Difference::of_statements(was, found);
            differences.extend(Difference::of_names(&pending.names, &names));
            let begun = RecordedWorld::pairs(found);
            if differences.is_empty() {
                note(open, Some(begun), false);
                return Ok(None);
            }
            (differences, Some(begun))
        }
        Err(unread) => {
            stop.reason.clone_from(&unread.reason);
            (Vec::new(), None)
        }
    };
    note(open, begun, true);
    let renewed = pending.world.as_deref().map_or(0, |world| world.renewed).saturating_add(1);
    if renewed > MOST {
        let message = "What the call depends on had changed after each approval. The call did not run.";
        let mut ended = Stop::new(Outcome::Cancelled).message(message);
        (ended.tool_code, ended.reason) = (Some(CHANGED.to_owned()), stop.reason.take());
        return Err(ended);
    }
    // A world that could not be read is still the one that was shown.
    let stated = found.unwrap_or_else(|_| was.to_vec());
    let renewed = anew(&pending, &entry.spec, effective.as_deref(), World { stated, renewed, differences }, names);
    Ok(Some(renew(open, renewed, &stop).await))
}

/// Notes the statements before the begin in the record of the decision, and whether the decision counts.
fn note(open: &mut OpenCall, begun: Option<Vec<(String, String)>>, is_refused: bool) {
    let Some(claim) = &mut open.claim else { return };
    let decision = &mut claim.decision;
    let is_stated = decision.world.is_some() || begun.as_ref().is_some_and(|begun| !begun.is_empty());
    if is_stated {
        decision.world.get_or_insert_default().begun = begun;
    }
    if is_refused {
        claim.decision = decision.clone().of_another_world();
    }
}

/// Returns the call with its new question.
fn anew(
    pending: &PendingCall,
    spec: &ToolSpec,
    effective: Option<&str>,
    world: World,
    names: Vec<NamedArgument>,
) -> PendingCall {
    let mut renewed = pending.clone();
    for name in names.into_iter().filter(|name| !name.failed) {
        if let Some(before) = renewed.names.iter_mut().find(|before| before.pointer == name.pointer) {
            *before = name;
        }
    }
    let sentence = match effective {
        Some(effective) => summary(spec, effective, &renewed.names),
        None => pending.sentence().map(str::to_owned),
    };
    renewed.explain(sentence, world);
    renewed
}

/// Writes the new question and the refused decision, and reports both. The call still waits.
async fn renew(open: &mut OpenCall, renewed: PendingCall, stop: &Stop) -> Ending {
    let Some(claim) = open.claim.as_deref() else {
        return Ending::NotTaken(ResumeError::NotWaiting(renewed.call_id));
    };
    let (compared, decision) = (claim.waiting.call.clone(), claim.decision.clone());
    let waiting = Waiting { call: renewed.clone(), ..claim.waiting.clone() };
    let run = open.run().clone();
    if let Err(error) = LedgerClient(&run).ask_anew(compared, waiting, decision).await {
        return Ending::NotTaken(error);
    }
    telemetry::contained(&run, &open.draft, stop);
    open.draft.asks(&renewed);
    let (id, outcome) = (renewed.call_id.clone(), Outcome::ApprovalRequired);
    let suspended = ToolExecResult::suspended(id.clone(), outcome, None, renewed.question());
    telemetry::announce_end(&run, &open.draft, &suspended);
    Ending::Refused(Box::new(stop.result(id, false)))
}

/// Lets the tool state what the call depends on. `bound` has the connections of a call that is about to begin.
async fn stated(
    open: &OpenCall,
    frozen: &Arc<Frozen>,
    instance: Option<Box<dyn Instance>>,
    bound: Option<&Connections>,
) -> Result<Vec<Stated>, Stop> {
    let run = open.run();
    match stating(instance, Capabilities::new())? {
        // A tool without a precondition opens no connection.
        None => return Ok(Vec::new()),
        Some(future) => discard(future),
    }
    let mut again = stages::read_again(run, &frozen.entry, &open.draft.id, frozen.canonical())?;
    let limits = run.policy().limits_of(frozen.entry.spec.name.as_str());
    let timeout = [frozen.entry.timeout, limits.runtime].into_iter().flatten().min();
    let timeout = timeout.unwrap_or(run.shared().lease);
    let opened = match bound {
        Some(_) => Connections::default(),
        None => opened(open, frozen, timeout).await?,
    };
    let (frozen, instance) = again.parts();
    let client = open.client.as_ref().map(|client| Arc::clone(&client.cancellation));
    let bindings = Bindings {
        granted: &frozen.entry.requirements,
        capabilities: &run.shared().capabilities,
        client: open.client.as_ref().map(|client| &client.offers),
        connections: &bound.unwrap_or(&opened).0,
        context: context_of(Arc::clone(frozen) as _, Some(timeout), client),
        host: None,
    };
    let future = stating(instance, bindings.read_only())?;
    drop(bindings);
    let Some(future) = future else { return Ok(Vec::new()) };
    let bounds = Bounds::new(Some(timeout), open.cancellation(), &frozen.ends);
    match invoke::contained(future, bounds).await {
        Ok(Ok(precondition)) => statements(open, frozen, &precondition).await,
        Ok(Err(error)) => Err(failed(error)),
        Err(interrupted) if interrupted.cause == Cause::Cancelled => Err(Stop::new(Outcome::Cancelled)),
        Err(interrupted) => Err(unread(interrupted.cause.outcome(ToolEffect::ReadOnly), interrupted.to_string())),
    }
}

/// Starts the precondition. `None` for a tool without one. The start is the author's code, so a panic in it is contained.
fn stating(instance: Option<Box<dyn Instance>>, capabilities: Capabilities) -> Result<Option<Stating>, Stop> {
    let Some(instance) = instance else {
        return Err(unread(Outcome::ExecutionError, "the arguments could not be built again".to_owned()));
    };
    attempted(|| instance.precondition(capabilities)).map_err(|text| unread(Outcome::Panicked, text))
}

/// Opens the connections that only read. The others are opened for an approved call only.
async fn opened(open: &OpenCall, frozen: &Frozen, timeout: Duration) -> Result<Connections, Stop> {
    let mut connections = Connections::default();
    for requirement in &frozen.entry.requirements {
        if let Source::Connection(kind) = requirement.source
            && requirement.effect == ToolEffect::ReadOnly
        {
            connections
                .0
                .push(stages::resolve_connection(open, requirement, kind, &frozen.entry.spec, Some(timeout)).await?);
        }
    }
    Ok(connections)
}

/// Returns the statements as a person reads them, without values of sensitive arguments.
async fn statements(open: &OpenCall, frozen: &Frozen, precondition: &Precondition) -> Result<Vec<Stated>, Stop> {
    if precondition.stated().len() > Precondition::MOST {
        let why = format!("the precondition states more than {} values", Precondition::MOST);
        return Err(unread(Outcome::ExecutionError, why));
    }
    let secrets = secrets(&frozen.entry.spec, frozen.effective());
    let is_secret = |text: &str| secrets.iter().any(|secret| reveals(text, secret));
    let shown = |text| if is_secret(text) { MASK } else { text };
    let digests = open.run().digests().await;
    let stated = precondition.stated().iter();
    Ok(stated.map(|(name, value)| Stated::new((name, value), shown, |hash| digests.of(hash))).collect())
}

/// The length from which a value of a sensitive argument is also found inside a longer text. Shorter ones occur by chance.
const FOUND_INSIDE: usize = 4;

fn reveals(text: &str, secret: &str) -> bool {
    text.trim() == secret || (secret.chars().count() >= FOUND_INSIDE && text.contains(secret))
}

/// Returns the values of the sensitive arguments.
fn secrets(spec: &ToolSpec, arguments: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !spec.sensitive.is_empty()
        && let Ok(arguments) = json::parse(arguments, &Limits::UNBOUNDED)
    {
        spec.sensitive.iter().filter_map(|name| arguments.get(name)).for_each(|value| collect(value, &mut found));
    }
    found
}

fn collect(value: &Tree<'_>, found: &mut Vec<String>) {
    match value {
        Tree::String(text) => found.extend(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Tree::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Tree::Object(members) => members.iter().for_each(|(_, member)| collect(member, found)),
        Tree::Null | Tree::Bool(_) => {}
        number => found.extend(serde_json::to_string(number)),
    }
}

/// The stop of a call whose precondition gave no statements.
fn unread(outcome: Outcome, why: String) -> Stop {
    let message = "What the call depends on could not be read. The call did not run.";
    Stop::new(outcome).message(message).reason(why, None)
}

/// The stop for the precondition's own error.
fn failed(error: ToolError) -> Stop {
    // Formatting the error runs the author's code again.
    let text = caught(|| error.detail()).unwrap_or_default();
    let message = sentence(error.safe_message(), MAX_MESSAGE_BYTES);
    let mut stop = Stop::new(Outcome::ExecutionError).message(message).reason(text, error.source_type());
    stop.tool_code = error.author_code().map(|code| sentence(code, MAX_CODE_BYTES));
    discard(error);
    stop
}
