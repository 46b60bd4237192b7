//! Preconditions: the outside values on which a call depends. Its tool states them when the call is suspended, and
//! again before it begins.
//!
//! The names that the application's look-ups find for the ids in the arguments are compared in the same way. If a value
//! or a name differs, the approval does not count, and the call waits with a new question.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::call::{
    Bounds, Cause, DecisionError, Difference, NamedArgument, Names, Outcome, RecordedWorld, Stated, Suspension,
    ToolExecResult, World, context_of,
};
use crate::capability::InjectedFrom;
use crate::component::{Bindings, Precondition};
use crate::contain::{attempted, discard};
use crate::hydrate::{Frozen, Hydrated};
use crate::json::{self, Limits, Tree};
use crate::redact::{MASK, summary};
use crate::runner::ResumeError;
use crate::runner::gate::ending::{Ending, Stop, Suspended};
use crate::runner::gate::invoke;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::{self, Connections};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::report::telemetry;
use crate::runner::waiting::names;
use crate::store::{PendingCall, Waiting};
use crate::tool::{Digested, ToolEffect, ToolSpec};

/// The maximum number of new questions of one call after changed preconditions. The next change ends the call, because
/// a precondition that always changes would otherwise cause questions without end.
const MAX_RENEWED_QUESTIONS: u8 = 3;

/// The code of a call that ends because its precondition changed after each approval.
const CHANGED: &str = "world_changed";

/// Returns the end of a call that is about to wait and whose precondition could not be read. If the same call already
/// waits in the store, it keeps its question.
pub(in crate::runner) async fn unstated(open: &mut OpenCall, frozen: &Frozen, stop: Stop) -> Result<Ending, Stop> {
    let pending = open.run().pending(&open.draft.id).await;
    match pending.map_err(|error| discard(open.run().store_unread(error))) {
        Ok(Some(pending)) if is_again(&pending, frozen) => {
            // No record contains the reason, so operators get a report.
            report(open, &stop);
            discard(stop);
            open.draft.copy_from_pending(&pending);
            let question = Box::new(pending.question());
            Ok(Ending::Suspended(Suspended { question, suspension: pending.suspension, prepared: None }))
        }
        _ => Err(stop),
    }
}

/// Whether a waiting call is the same call of the model. Compares the model's arguments, because a decider may have
/// edited the current ones.
fn is_again(pending: &PendingCall, frozen: &Frozen) -> bool {
    pending.suspension == Suspension::Approval
        && pending.graph.is_none()
        && pending.tool == frozen.entry.spec.name
        && pending.definition_hash == frozen.entry.spec.definition_hash
        && pending.of_model().as_str() == &**frozen.canonical()
}

/// Reports to operators why a precondition could not be read, because no record of the call contains the reason. A
/// cancelled call is not reported.
pub(in crate::runner) fn report(open: &OpenCall, unread: &Stop) {
    if unread.outcome != Outcome::Cancelled {
        telemetry::contained(open.run(), &open.draft, unread);
    }
}

/// Returns the statements of the tool about a call that is about to wait. Empty for a tool without a precondition.
pub(in crate::runner) async fn shown(open: &OpenCall, frozen: &Frozen) -> Result<Vec<Stated>, Stop> {
    if !frozen.entry.behaviour.states() {
        return Ok(Vec::new());
    }
    let again = stages::read_again(open.run(), &frozen.entry, &open.draft.id, frozen.canonical());
    stated(open, again, None).await
}

/// Compares the precondition and the looked-up names with the values that the approver saw, immediately before the
/// approved call begins. `Ok(None)` if they are equal. Otherwise the call waits with a new question, or ends.
pub(in crate::runner) async fn changed(open: &mut OpenCall, bound: &Connections) -> Result<Option<Ending>, Stop> {
    let Some(claim) = open.claim.as_deref() else { return Ok(None) };
    let run = open.run().clone();
    let pending = claim.waiting.call.clone();
    let Some(entry) = run.shared().catalog.entry(pending.tool.as_str()).cloned() else { return Ok(None) };
    let states = entry.behaviour.states();
    if pending.graph.is_some() || !(states || pending.world.is_some() || !pending.names.is_empty()) {
        return Ok(None);
    }
    // A person may have edited the arguments, but the approver saw statements about the stored ones. If the stored
    // arguments are no longer valid, there are no names to compare.
    let asked = stages::read_again(&run, &entry, &pending.call_id, pending.arguments());
    let effective = asked.as_ref().ok().map(|asked| asked.frozen.effective().to_owned());
    let found = if states { stated(open, asked, Some(bound)).await } else { Ok(Vec::new()) };
    let found = match found {
        Err(stop) if stop.outcome == Outcome::Cancelled => return Err(stop),
        found => found,
    };
    let names = match &effective {
        Some(effective) if !pending.names.is_empty() => {
            let unnamed = names::unnamed(&run, &entry.spec, effective);
            names::look_up(&run, &pending.call_id, pending.tool.as_str(), unnamed).await
        }
        _ => Names::default(),
    };
    let mut shown = Names { shown: pending.names.clone(), ..Names::default() };
    shown.cut = pending.world.as_deref().map(|world| world.cut.clone()).unwrap_or_default();
    let was = pending.world.as_deref().map_or(&[][..], |world| &world.stated);
    let message = "The precondition of the call has changed since it was shown, or could not be read. The call did not \
                   run, and waits with a new question.";
    let mut stop = Stop::mismatch(DecisionError::World).message(message);
    let (differences, begun) = match &found {
        Ok(found) => {
            let mut differences = Difference::of_statements(was, found);
            differences.extend(Difference::of_names(&shown, &names));
            let begun = RecordedWorld::pairs(found);
            if differences.is_empty() {
                note(open, Some(begun), false);
                return Ok(None);
            }
            (differences, Some(begun))
        }
        Err(unread) => {
            report(open, unread);
            stop.reason.clone_from(&unread.reason);
            (Vec::new(), None)
        }
    };
    note(open, begun, true);
    let renewed = pending.world.as_deref().map_or(0, |world| world.renewed).saturating_add(1);
    if renewed > MAX_RENEWED_QUESTIONS {
        let message = "The precondition of the call had changed after each approval. The call did not run.";
        let mut ended = Stop::new(Outcome::Cancelled).message(message);
        (ended.tool_code, ended.reason) = (Some(CHANGED.to_owned()), stop.reason.take());
        return Err(ended);
    }
    // If the precondition could not be read, the question keeps the statements that the approver saw.
    let unread = found.is_err();
    let stated = found.unwrap_or_else(|_| was.to_vec());
    shown.update(names);
    let world = World { stated, cut: shown.cut, renewed, differences, unread };
    let renewed = renewed_call(&pending, &entry.spec, effective.as_deref(), world, shown.shown);
    renew(open, renewed, &stop).await.map(Some)
}

/// Adds the statements at the beginning of the call to the record of the decision. `is_refused` marks the decision as
/// one that does not count.
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
fn renewed_call(
    pending: &PendingCall,
    spec: &ToolSpec,
    effective: Option<&str>,
    world: World,
    names: Vec<NamedArgument>,
) -> PendingCall {
    let mut renewed = PendingCall { names, ..pending.clone() };
    let sentence = match effective {
        Some(effective) => summary(spec, effective, &renewed.names),
        None => pending.sentence().map(str::to_owned),
    };
    renewed.explain(sentence, world);
    renewed
}

/// Writes the new question and the refused decision, and emits the event of the suspension. If the call has expired, it
/// ends instead.
async fn renew(open: &mut OpenCall, renewed: PendingCall, stop: &Stop) -> Result<Ending, Stop> {
    let Some(claim) = open.claim.as_deref() else {
        return Ok(Ending::NotTaken(ResumeError::NotWaiting(renewed.call_id)));
    };
    let (compared, decision) = (claim.waiting.call.clone(), claim.decision.clone());
    let waiting = Waiting { call: renewed.clone(), ..claim.waiting.clone() };
    let run = open.run().clone();
    match LedgerClient(&run).ask_anew(compared, waiting, decision.clone()).await {
        Ok(true) => {}
        Ok(false) => {
            if let Some(claim) = &mut open.claim {
                claim.decision = decision.too_late();
            }
            return Err(Stop::new(Outcome::ApprovalExpired));
        }
        Err(error) => return Ok(Ending::NotTaken(error)),
    }
    telemetry::contained(&run, &open.draft, stop);
    open.draft.copy_from_pending(&renewed);
    let (id, outcome) = (renewed.call_id.clone(), Outcome::ApprovalRequired);
    let suspended = ToolExecResult::suspended(id.clone(), outcome, None, renewed.question());
    telemetry::announce_end(&run, &open.draft, &suspended);
    Ok(Ending::Refused(Box::new(stop.result(id, false))))
}

/// Calls the tool's precondition with the rebuilt arguments. `bound` contains the connections of a call that is about
/// to begin. If it is `None`, only `read_only` connections are opened.
async fn stated(
    open: &OpenCall,
    built: Result<Hydrated, Stop>,
    bound: Option<&Connections>,
) -> Result<Vec<Stated>, Stop> {
    let mut built = built.map_err(|stop| {
        discard(stop);
        unbuilt()
    })?;
    let (frozen, instance) = built.parts();
    let instance = instance.ok_or_else(unbuilt)?;
    let run = open.run();
    let limits = run.policy().limits_of(frozen.entry.spec.name.as_str());
    let timeout = [frozen.entry.timeout, limits.runtime].into_iter().flatten().min();
    let timeout = timeout.unwrap_or(run.shared().lease);
    let opened = match bound {
        Some(_) => Connections::default(),
        None => opened(open, frozen, timeout).await?,
    };
    let client = open.client.as_ref().map(|client| Arc::clone(&client.cancellation));
    let bindings = Bindings {
        granted: &frozen.entry.requirements,
        capabilities: &run.shared().capabilities,
        client: open.client.as_ref().map(|client| &client.offers),
        connections: &bound.unwrap_or(&opened).0,
        context: context_of(Arc::clone(frozen) as _, Some(timeout), client),
        host: None,
    };
    // The author's code may run, and panic, before the future is polled.
    let future = attempted(|| instance.precondition(bindings.read_only()));
    let future = future.map_err(|text| unread(Outcome::Panicked, text))?;
    drop(bindings);
    let Some(future) = future else { return Ok(Vec::new()) };
    let bounds = Bounds::new(Some(timeout), open.cancellation(), &frozen.ends);
    match invoke::contained(future, bounds).await {
        Ok(Ok(precondition)) => statements(open, frozen, &precondition).await,
        Ok(Err(error)) => Err(stages::failed(error)),
        Err(interrupted) if interrupted.cause == Cause::Cancelled => Err(Stop::new(Outcome::Cancelled)),
        Err(interrupted) => Err(unread(interrupted.cause.outcome(ToolEffect::ReadOnly), interrupted.to_string())),
    }
}

/// Returns the stop of a call whose arguments cannot be rebuilt.
fn unbuilt() -> Stop {
    unread(Outcome::ExecutionError, "the arguments could not be built again".to_owned())
}

/// Opens the `read_only` connections. Other connections are opened only for an approved call.
async fn opened(open: &OpenCall, frozen: &Frozen, timeout: Duration) -> Result<Connections, Stop> {
    let mut connections = Connections::default();
    for requirement in &frozen.entry.requirements {
        if let InjectedFrom::Connection(kind) = requirement.source
            && requirement.effect == ToolEffect::ReadOnly
        {
            connections
                .0
                .push(stages::resolve_connection(open, requirement, kind, &frozen.entry.spec, Some(timeout)).await?);
        }
    }
    Ok(connections)
}

/// Returns the statements for the approver. Values of sensitive arguments are masked.
async fn statements(open: &OpenCall, frozen: &Frozen, precondition: &Precondition) -> Result<Vec<Stated>, Stop> {
    if precondition.stated().len() > Precondition::MAX_STATEMENTS {
        let why = format!("the precondition states more than {} values", Precondition::MAX_STATEMENTS);
        return Err(unread(Outcome::ExecutionError, why));
    }
    let secrets = secrets(&frozen.entry.spec, frozen.effective());
    // A long text is masked without a search, which would take too long. Its end would be cut off in any case.
    let is_secret = |text: &str| {
        !secrets.is_empty() && (text.len() > SEARCHED || secrets.iter().any(|secret| reveals(text, secret)))
    };
    let shown = |text| if is_secret(text) { MASK } else { text };
    let digests = open.run().digests().await;
    let stated = precondition.stated().iter();
    Ok(stated.map(|(name, value)| Stated::new((name, value), shown, |hash| digests.of(hash))).collect())
}

/// The minimum length, in characters, of a sensitive value that is found inside words. A shorter value can be part of a
/// word by chance, so it counts only if no letter or digit is next to it.
const FOUND_INSIDE: usize = 4;

/// The maximum length, in bytes, of a text that is searched for values of sensitive arguments. A longer text is masked.
const SEARCHED: usize = 16 * 1024;

fn reveals(text: &str, secret: &str) -> bool {
    let is_long = secret.chars().count() >= FOUND_INSIDE;
    text.match_indices(secret).any(|(at, found)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + found.len()..).and_then(|after| after.chars().next());
        is_long || !before.into_iter().chain(after).any(char::is_alphanumeric)
    })
}

/// Returns the values of the sensitive arguments, and the names of their members that the schema does not declare.
fn secrets(spec: &ToolSpec, arguments: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !spec.sensitive.is_empty()
        && let Ok(arguments) = json::parse(arguments, &Limits::UNBOUNDED)
    {
        let (schema, mut named) = (spec.input_schema.to_value(), BTreeSet::new());
        name(&schema, &mut named);
        let sensitive = spec.sensitive.iter().filter_map(|name| arguments.get(name));
        sensitive.for_each(|value| collect(value, &named, &mut found));
        found.sort_unstable();
        found.dedup();
    }
    found
}

/// Adds the names of all members that a schema declares, at any depth.
fn name<'s>(schema: &'s Value, named: &mut BTreeSet<&'s str>) {
    match schema {
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object);
            named.extend(properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str));
            members.values().for_each(|member| name(member, named));
        }
        Value::Array(items) => items.iter().for_each(|item| name(item, named)),
        _ => {}
    }
}

fn collect(value: &Tree<'_>, named: &BTreeSet<&str>, found: &mut Vec<String>) {
    match value {
        Tree::String(text) => found.extend(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Tree::Array(items) => items.iter().for_each(|item| collect(item, named, found)),
        Tree::Object(members) => members.iter().for_each(|(name, member)| {
            let secret = Some(name.trim()).filter(|name| !name.is_empty() && !named.contains(name));
            found.extend(secret.map(str::to_owned));
            collect(member, named, found);
        }),
        Tree::Null => {}
        scalar => found.extend(serde_json::to_string(scalar)),
    }
}

/// Returns the stop of a call whose precondition could not be read.
fn unread(outcome: Outcome, why: String) -> Stop {
    let message = "The precondition of the call could not be read. The call did not run.";
    Stop::new(outcome).message(message).reason(why, None)
}
