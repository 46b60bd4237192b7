//! From the permit to the projected result: reserve, bind, run, conclude.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument;

use crate::call::{Cause, ContextFields, Outcome, ToolContext};
use crate::capability::{ConnectionRequest, Source};
use crate::component::Bindings;
use crate::contain::{caught, discard};
use crate::hydrate::Hydrated;
use crate::json::{self, Limits};
use crate::policy::{LoopVerdict, Reservation, Spend};
use crate::redact::{ProjectError, Projected};
use crate::registration::RunFailure;
use crate::runner::Run;
use crate::runner::open::OpenCall;
use crate::runner::stages::Permit;
use crate::runner::stop::{Ended, Stop};
use crate::runner::{approval, invoke, telemetry};
use crate::store::Suspension;
use crate::text::cut;
use crate::tool::Execution;

const REPEATED: &str = "Note: you made the same call with the same arguments before. A third time it will be refused.";

/// A permitted call with its share of the run's budget, given back when it is dropped.
pub(in crate::runner) struct Reserved {
    hydrated: Hydrated,
    reservation: Reservation,
    /// How long the tool may take: its own limit, the policy's, and what is left of the run's.
    timeout: Option<Duration>,
    warning: Option<&'static str>,
}

/// A call with everything its tool borrows.
pub(in crate::runner) struct Bound {
    reserved: Reserved,
    connections: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    context: Arc<ToolContext>,
}

/// A tool's answer, projected.
pub(in crate::runner) struct Ran {
    hydrated: Hydrated,
    projected: Projected,
    warning: Option<&'static str>,
}

/// Takes the call's share of the budgets and asks the loop guard.
pub(in crate::runner) fn reserve(open: &OpenCall, permit: Permit) -> Result<Reserved, Stop> {
    let run = &open.run.0;
    let hydrated = permit.hydrated;
    let name = hydrated.entry.spec.name.as_str();
    let repeated = run.loop_guard.observe(name, hydrated.effective);
    let warning = match repeated {
        LoopVerdict::Go => None,
        LoopVerdict::Warn(_) => Some(REPEATED),
        LoopVerdict::Stop(_) => {
            let message =
                "You made the same call with the same arguments again and again. It did not run: do something else.";
            return Err(Stop::new(Outcome::BudgetExceeded).message(message));
        }
    };
    let wanted = [hydrated.entry.timeout, run.shared.policy.limits_of(name).runtime].into_iter().flatten().min();
    let reservation = run
        .ledger
        .reserve(Spend::call(wanted))
        .map_err(|exceeded| Stop::new(Outcome::BudgetExceeded).message(format!("The call did not run: {exceeded}.")))?;
    let timeout = wanted.into_iter().chain(reservation.time()).min();
    Ok(Reserved { hydrated, reservation, timeout, warning })
}

/// Resolves connections and makes the context of the call.
pub(in crate::runner) async fn bind(open: &OpenCall, reserved: Reserved) -> Result<Bound, Stop> {
    let options = &open.run.0.options;
    let shared = &open.run.0.shared;
    let spec = Arc::clone(&reserved.hydrated.entry.spec);
    let mut connections = Vec::new();
    for requirement in &reserved.hydrated.entry.requirements {
        let Source::Connection(kind) = requirement.source else { continue };
        let unavailable = || Stop::new(Outcome::ConnectionUnavailable);
        let id = options.connections.get(kind).ok_or_else(unavailable)?;
        let broker = shared.broker.as_ref().ok_or_else(unavailable)?;
        let request = ConnectionRequest {
            kind,
            id,
            principal: options.principal.as_deref(),
            tenant: options.tenant.as_deref(),
            tool: spec.name.as_str(),
            wanted: requirement,
        };
        let resolved =
            invoke::contained(broker.resolve(request), reserved.timeout, &options.cancellation.child_token()).await;
        let handle = resolved.map_err(|_| unavailable())?.map_err(|_| unavailable())?;
        if handle.type_id != requirement.type_id {
            return Err(unavailable());
        }
        connections.push((handle.type_id, handle.value));
    }
    let context = Arc::new(ToolContext(ContextFields {
        call_id: open.record_id().clone(),
        tool: spec.name.clone(),
        run_id: Arc::clone(&open.run.0.id),
        session_id: options.session.clone(),
        conversation_id: options.conversation.clone(),
        agent_id: options.agent.clone(),
        tenant: options.tenant.clone(),
        principal: options.principal.clone(),
        deadline: reserved.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        cancellation: options.cancellation.child_token(),
        arguments_digest: reserved.hydrated.effective,
    }));
    Ok(Bound { reserved, connections, context })
}

/// Runs the tool. Panics, timeouts and cancellation end here; what comes out is projected already.
pub(in crate::runner) async fn run(open: &mut OpenCall, bound: Bound) -> Result<Ran, Stop> {
    let Bound { reserved, connections, context } = bound;
    let Reserved { mut hydrated, reservation, timeout, warning } = reserved;
    let entry = Arc::clone(&hydrated.entry);
    let limit = open.run.0.shared.policy.limits_of(entry.spec.name.as_str()).result_bytes;
    let max_bytes = entry.max_result_bytes.map_or(limit, |own| own.min(limit));
    let future = {
        let bindings = Bindings {
            granted: &entry.requirements,
            capabilities: &open.run.0.shared.capabilities,
            connections: &connections,
            context: &context,
        };
        hydrated
            .take_instance()
            .zip(open.run.0.shared.compiled.projector(&entry).cloned())
            .and_then(|(instance, projector)| instance.run(&bindings, projector, max_bytes))
    };
    // Building a runner checks every binding, so only a second run of one hydrated call could come here empty.
    let future = future.ok_or_else(|| Stop::new(Outcome::InstantiateFailed))?;
    open.executed = true;
    let span = telemetry::span(&open.run, entry.spec.name.as_str(), context.call_id());
    let ended = invoke::contained(future, timeout, context.cancellation()).instrument(span).await;
    reservation.settle(0, 0.0);
    match ended {
        Ok(Ok(projected)) => Ok(Ran { hydrated, projected, warning }),
        Ok(Err(failure)) => Err(failed(failure)),
        Err(cause) => Err(interrupted(cause, open.effect.unwrap_or(entry.spec.effect))),
    }
}

fn interrupted(cause: Cause, effect: crate::tool::ToolEffect) -> Stop {
    let mut stop = Stop::new(cause.outcome(effect));
    stop.cause = Some(cause);
    stop
}

fn failed(failure: RunFailure) -> Stop {
    match failure {
        RunFailure::Tool(error) => {
            let mut stop =
                Stop::new(Outcome::ExecutionError).message(sentence(error.safe_message(), MAX_MESSAGE_BYTES));
            stop.tool_code = error.author_code().map(|code| sentence(code, MAX_CODE_BYTES));
            // Writing the text runs the author's code once more.
            let detail = caught(|| error.detail()).filter(|text| !text.is_empty());
            stop.detail = detail.map(Arc::from);
            discard(error);
            stop
        }
        RunFailure::Output(error) => unprojected(&error),
    }
}

/// The longest text and the longest code that an error of a tool may have: they are no way round the result limit.
const MAX_MESSAGE_BYTES: usize = 2048;
const MAX_CODE_BYTES: usize = 128;

/// An author's text as models, UIs and records get it: bounded, and without control characters but line breaks.
fn sentence(text: &str, max: usize) -> String {
    let kept = cut(text, max);
    let mut sentence: String =
        kept.chars().map(|one| if one.is_control() && one != '\n' { ' ' } else { one }).collect();
    if kept.len() < text.len() {
        sentence.push_str("..");
    }
    sentence
}

/// The stop for a value that could not be projected.
pub(in crate::runner) fn unprojected(error: &ProjectError) -> Stop {
    Stop::new(match error {
        ProjectError::OutputInvalid(_) => Outcome::OutputInvalid,
        ProjectError::TooLarge => Outcome::ResultTooLarge,
        ProjectError::Redaction => Outcome::RedactionFailed,
    })
}

/// The answer goes to the model, or the prepared payload of a client tool to the client.
pub(in crate::runner) async fn conclude(open: &mut OpenCall, ran: Ran) -> Result<Ended, Stop> {
    let Ran { hydrated, projected, warning } = ran;
    if hydrated.entry.spec.execution == Execution::Client {
        return Err(approval::suspend(open, hydrated, Suspension::Client, Some(projected.shown)).await);
    }
    let seen = projected.model.as_ref().unwrap_or(&projected.shown);
    let policy = &open.run.0.shared.policy;
    remember(&open.run, seen.get());
    let mut state = open.run.state();
    policy.labels_of(&hydrated.entry.subject()).for_each(|label| state.label(label));
    Ok(Ended { shown: projected.shown, model: projected.model, warning })
}

/// Ids in a result count as seen from now on. It is our own JSON, so only its size is left to chance.
pub(in crate::runner) fn remember(run: &Run, result: &str) {
    if !run.0.shared.catalog.asks_evidence {
        return;
    }
    if let Ok(tree) = json::parse_value(result, &Limits::UNBOUNDED) {
        run.evidence().insert_result(&tree);
    }
}
