//! Run: executes the tool. Turns panics, timeouts and cancellation into a [`Stop`], and projects the output (writes it
//! through the allowlist).

use std::any::Any;
use std::sync::Arc;

use tracing::Instrument;

use crate::call::{Cause, Outcome, PendingGraph, ToolContext};
use crate::catalog::Entry;
use crate::component::Bindings;
use crate::contain::{caught, discard};
use crate::error::{ErrorKind, ToolError};
use crate::redact::{ProjectError, Projected};
use crate::registration::{Purpose, RunFailure, Running};
use crate::runner::gate::deliver::label;
use crate::runner::gate::ending::{MAX_CODE_BYTES, MAX_MESSAGE_BYTES, Stop};
use crate::runner::gate::invoke;
use crate::runner::gate::invoke::Interrupted;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::spans::Execution;
use crate::runner::gate::stages::begin::Entered;
use crate::runner::gate::stages::bind::Bound;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::ledger::orphans::Orphans;
use crate::runner::{Host, Run};
use crate::text::sentence;
use crate::tool::{SEARCH, ToolEffect, is_graph};

/// The result of a tool that did not fail.
pub(in crate::runner) enum Left {
    /// The projected output.
    Output(Projected),
    /// A graph waits for a decision on a call that it made.
    Waits(Box<PendingGraph>),
}

/// The end of a tool: its own result, or the interruption that stopped it.
type Ended = Result<Result<Projected, RunFailure>, Interrupted>;

/// Runs the tool.
///
/// The future of every call contains this one. The parts before and after the tool's own work are therefore functions
/// that are not `async`, and the call is borrowed: a future that owns the call stores it twice.
pub(in crate::runner) async fn run(open: &mut OpenCall, bound: &mut Bound, entered: Entered) -> Result<Left, Stop> {
    if is_graph(bound.tool()) {
        // The id of a graph's run depends on the digest key, and `start` cannot wait for the store.
        Box::pin(open.run().digests()).await;
    }
    let Started { future, execution, orphans } = start(open, bound, &entered)?;
    let bounds = bound.bounds(open);
    let running = invoke::contained(future, bounds);
    let ended = match open.attempt.as_deref() {
        None if execution.is_disabled() => running.await,
        // On the heap: inline, this future would enlarge the future of every call, and only some calls need it.
        None => Box::pin(running.instrument(execution.span())).await,
        Some(attempt) => {
            let running = running.instrument(execution.span());
            Box::pin(LedgerClient(open.run()).hold(attempt, running)).await.unwrap_or_else(|| {
                // The lease is lost. Another process may take the call over, so this attempt has to stop.
                bounds.token().cancel();
                Err(Interrupted::lost())
            })
        }
    };
    if let Some(orphans) = orphans {
        let kept = match &ended {
            Ok(Err(RunFailure::Waits(pending))) => &*pending.waiting,
            _ => &[],
        };
        Box::pin(orphans.close(kept)).await;
    }
    end(open, bound, &entered, execution, ended)
}

/// A tool whose future is about to be polled.
struct Started {
    future: Running,
    execution: Execution,
    /// The calls that a graph may leave unfinished.
    orphans: Option<Box<Orphans>>,
}

/// Binds the tool's parameters and makes its future.
#[inline]
fn start(open: &mut OpenCall, bound: &mut Bound, entered: &Entered) -> Result<Started, Stop> {
    let context = bound.context(open);
    let Bound { reserved, connections, .. } = bound;
    let (frozen, instance) = reserved.hydrated.parts();
    let entry = &frozen.entry;
    let name = entry.spec.name.as_str();
    let (host, orphans) = (is_graph(name) || name == SEARCH).then(|| hosted(open, &context)).unzip();
    let shared = open.run().shared();
    let bindings = Bindings {
        granted: &entry.requirements,
        capabilities: &shared.capabilities,
        client: open.client.as_ref().map(|client| &client.offers),
        connections: &connections.0,
        context,
        host,
    };
    let future = instance
        .zip(shared.compiled.projector(entry).cloned())
        .and_then(|(instance, projector)| instance.run(entered.purpose, bindings, projector, reserved.max_bytes))
        // Building a runner checks every binding, so only a second run of one hydrated call has no arguments here.
        .ok_or_else(|| Stop::new(Outcome::InstantiateFailed))?;
    let execution =
        Execution::begin(open.run(), &open.parent, &open.draft, &entry.spec, &frozen.call.id, effect(open, entry));
    Ok(Started { future, execution, orphans })
}

/// Returns the handle to the run for a tool that calls others, and the guard that closes the calls it leaves
/// unfinished.
#[cold]
fn hosted(open: &mut OpenCall, context: &ToolContext) -> (Arc<dyn Any + Send + Sync>, Box<Orphans>) {
    let graph = open.graph_run(context);
    let continued = open.continued.take().map(|continued| *continued);
    let orphans = Box::new(Orphans::of(open.run(), context, Arc::clone(&graph)));
    (Arc::new(Host::new(open.run().clone(), graph, continued)), orphans)
}

/// Returns the tool's effect by the policy's classification.
fn effect(open: &OpenCall, entry: &Entry) -> ToolEffect {
    open.draft.effect().unwrap_or(entry.spec.effect)
}

/// Gives back the unused part of the budgets, and returns the result of the tool.
#[inline]
fn end(
    open: &mut OpenCall,
    bound: &mut Bound,
    entered: &Entered,
    execution: Execution,
    ended: Ended,
) -> Result<Left, Stop> {
    let purpose = entered.purpose;
    let bytes = match &ended {
        Ok(Ok(projected)) => projected.shown.get().len(),
        _ => 0,
    };
    // Settled for every kind of end.
    bound.reserved.settle(open, bytes as u64);
    let entry = &bound.reserved.hydrated.frozen.entry;
    let effect = effect(open, entry);
    let ended = match ended {
        Ok(Ok(projected)) => Ok(Left::Output(projected)),
        Ok(Err(failure)) => ended_by_itself(open.run(), entry, effect, purpose, failure),
        Err(interrupted) if purpose == Purpose::Reconcile => Err(outcome_unknown(&interrupted.to_string())),
        Err(interrupted) => Err(stopped(&interrupted, effect)),
    };
    execution.end(match &ended {
        Ok(Left::Output(projected)) => Ok(Some(projected)),
        Ok(Left::Waits(_)) => Ok(None),
        Err(stop) => Err(stop),
    });
    let did_nothing = |stop: &Stop| match stop.outcome {
        // A reconciliation ends as `cancelled` only if the outside system refuses the key.
        Outcome::Cancelled => purpose == Purpose::Reconcile,
        outcome => outcome == Outcome::ConnectionUnavailable,
    };
    if matches!(&ended, Err(stop) if did_nothing(stop)) {
        open.had_no_effect();
    }
    ended
}

/// Returns the result of a tool that was not interrupted and returned no output.
#[cold]
fn ended_by_itself(
    run: &Run,
    entry: &Entry,
    effect: ToolEffect,
    purpose: Purpose,
    failure: RunFailure,
) -> Result<Left, Stop> {
    Err(match failure {
        RunFailure::Waits(pending) => return Ok(Left::Waits(pending)),
        RunFailure::Prevented => prevented(),
        RunFailure::Unknown => outcome_unknown("the end of an earlier attempt is unknown"),
        // A failed reconciliation gives no information about the earlier attempt.
        RunFailure::Tool(error) | RunFailure::Lost(error) | RunFailure::Unauthorized(error)
            if purpose == Purpose::Reconcile =>
        {
            let text = text_of(&error);
            discard(error);
            outcome_unknown(&text)
        }
        RunFailure::Output(_) if purpose == Purpose::Reconcile => {
            outcome_unknown("the reconciled value does not fit the tool's output")
        }
        RunFailure::Lost(error) => broken_off(error, effect),
        RunFailure::Unauthorized(error) => Stop::new(Outcome::ConnectionUnavailable).reason(error.detail(), None),
        RunFailure::Tool(error) => {
            // The author's sentence reaches the model too, and can contain data that the tool read.
            label(run, entry);
            failed(error)
        }
        RunFailure::Output(error) => {
            label(run, entry);
            unprojected(&error)
        }
    })
}

/// Returns the stop of a call whose earlier attempt had no effect. The outside system refuses its idempotency key from
/// now on.
fn prevented() -> Stop {
    let message = "An earlier attempt at this call broke off and had no effect. It may be made again.";
    let mut stop = Stop::new(Outcome::Cancelled).message(message);
    stop.cause = Some(Cause::Prevented);
    stop
}

/// Returns the stop for an earlier attempt whose outcome is unknown.
#[cold]
fn outcome_unknown(why: &str) -> Stop {
    let mut stop = Stop::new(Outcome::OutcomeUnknown).reason(why, None);
    stop.cause = Some(Cause::Lost);
    stop
}

/// Returns the text of an error for operators. Formatting the error runs the author's code again.
fn text_of(error: &ToolError) -> String {
    caught(|| error.detail()).unwrap_or_default()
}

/// Returns the stop of an interrupted tool. `effect` is the policy's classification: if the policy raises a tool from
/// `read_only`, the tool may have taken effect.
#[cold]
fn stopped(interrupted: &Interrupted, effect: ToolEffect) -> Stop {
    let mut stop = Stop::new(interrupted.cause.outcome(effect)).reason(interrupted.to_string(), None);
    stop.cause = Some(interrupted.cause);
    stop
}

/// Returns the stop for a tool whose connection broke off, or whose server timed out.
fn broken_off(error: ToolError, effect: ToolEffect) -> Stop {
    let cause = if error.kind() == ErrorKind::TimedOut { Cause::Timeout } else { Cause::Lost };
    let text = text_of(&error);
    let mut stop = Stop::new(cause.outcome(effect)).reason(text, error.source_type());
    if effect == ToolEffect::ReadOnly && cause == Cause::Lost {
        stop = stop.message("The tool got no answer. The call may be made again.");
    }
    stop.cause = Some(cause);
    discard(error);
    stop
}

/// Returns the stop for an error of the tool or of its precondition.
pub(in crate::runner) fn failed(error: ToolError) -> Stop {
    let text = text_of(&error);
    let message = sentence(error.safe_message(), MAX_MESSAGE_BYTES);
    let mut stop = Stop::new(Outcome::ExecutionError).message(message).reason(text, error.source_type());
    stop.tool_code = error.author_code().map(|code| sentence(code, MAX_CODE_BYTES));
    discard(error);
    stop
}

/// Returns the stop for a value that could not be projected.
pub(in crate::runner) fn unprojected(error: &ProjectError) -> Stop {
    Stop::new(match error {
        ProjectError::OutputInvalid(_) => Outcome::OutputInvalid,
        ProjectError::TooLarge => Outcome::ResultTooLarge,
        ProjectError::Redaction => Outcome::RedactionFailed,
    })
}
