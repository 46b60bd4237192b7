//! Decisions on calls in runs of the store: checked, posted to the run, and waited for.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::agent::{ClientAnswer, Incoming, QueueError, RunQueue};
use crate::call::{Decider, Mismatch, Outcome, RecordedViolation};
use crate::cli::approvals::{Decision, waiting};
use crate::cli::args::{By, Endpoint};
use crate::cli::call::json;
use crate::cli::exit::{Exit, Failure};
use crate::cli::frozen::frozen;
use crate::cli::session::Cli;
use crate::cli::{attend, terminal};
use crate::policy::{Decided, RunPolicy};
use crate::runner::{ApprovalDecision, ResumeError};
use crate::store::{
    AuditRecord, Clock as _, DecisionKind, DecisionRecord, Key, PendingCall, RecordFilter, Refusal, Store, StoredRun,
    SystemClock,
};
use crate::tool::ToolEffect;

/// How often a person who waits for a worker looks.
const LOOK: Duration = Duration::from_millis(100);

/// What became of a decision, as `--json` prints it.
#[derive(Serialize)]
struct Told<'a> {
    call: &'a str,
    run: &'a str,
    decision: &'static str,
    state: &'static str,
    /// How the call ended. `None` if it has not, as far as this process waited.
    outcome: Option<Outcome>,
}

pub(super) async fn decide(
    cli: &Cli<'_>,
    (id, call, run): (&str, &PendingCall, &StoredRun),
    decision: Decision,
    by: &By,
    endpoint: &Endpoint,
) -> Result<Exit, Failure> {
    if endpoint.model_url.is_some() {
        let text = "a worker continues this run, with its own model; leave `--model-url` out";
        return Err(Failure::usage(text));
    }
    let store = cli.store().await?;
    if call.is_expired(SystemClock.now()) {
        return Err(waiting::unknown(id));
    }
    let (incoming, kind) = match decision {
        Decision::Approval(decision) => {
            let decider = cli.named_decider(call, &by.who)?;
            check(cli, &*store, call, &decision, &decider).await?;
            let kind = decision.kind();
            (Incoming::new().decide(call.call_id.clone(), decision, &decider), kind)
        }
        Decision::Answer(output) => {
            (Incoming::new().answer(ClientAnswer::value(call.call_id.clone(), output)), DecisionKind::ClientResult)
        }
    };
    let of_call = RecordFilter::call(Arc::clone(&call.run_id), call.call_id.clone());
    let seen = store.records(&of_call).await?.last().map_or(0, |record| record.position);
    let posted = RunQueue::new(Arc::clone(&store)).post_for(std::slice::from_ref(call), &incoming).await;
    let post = match posted {
        Ok(Ok(post)) => post,
        Ok(Err(_)) | Err(QueueError::Unknown) => return Err(waiting::unknown(id)),
        Err(error) => return Err(error.into()),
    };
    let look = Look { store: &*store, call, post, records: RecordFilter { after: seen, ..of_call } };
    let state = match by.wait {
        None => State::Posted,
        Some(time) => attend::interruptible(look.wait(time)).await.unwrap_or(Ok(State::Posted))?,
    };
    tell(cli, call, run, (kind, by.wait), &state)
}

/// Refuses a decision that the policy or the tool's schema refuses in any case. The attempt of somebody who may not
/// decide is recorded. Everything is checked again by the worker that carries it out.
pub(in crate::cli) async fn check(
    cli: &Cli<'_>,
    store: &dyn Store,
    call: &PendingCall,
    decision: &ApprovalDecision,
    decider: &Decider,
) -> Result<(), Failure> {
    may_decide(cli, store, call, decision.kind(), decider).await?;
    let (catalog, policy) = (cli.catalog()?, cli.policy()?);
    if let (ApprovalDecision::ApproveEdited(arguments), Some(entry)) = (decision, catalog.entry(call.decided())) {
        frozen(&catalog, &policy, entry, arguments.clone())?;
    }
    Ok(())
}

/// Refuses somebody who may not decide, and records the attempt. Returns the effect of the tool; `None` if it is gone.
pub(in crate::cli) async fn may_decide(
    cli: &Cli<'_>,
    store: &dyn Store,
    call: &PendingCall,
    kind: DecisionKind,
    decider: &Decider,
) -> Result<Option<ToolEffect>, Failure> {
    let (catalog, policy) = (cli.catalog()?, cli.policy()?);
    let tool = call.decided();
    let effect = catalog.entry(tool).map(|entry| policy.effect_of(tool, entry.spec.effect));
    let decided = Decided {
        tool,
        // A tool that is gone may have had any effect.
        effect: effect.unwrap_or(ToolEffect::ExternalSideEffect),
        principal: call.principal.as_deref(),
        tenant: call.tenant.as_deref(),
    };
    let Some(mismatch) = RunPolicy::new(policy).bars(decider, &decided) else { return Ok(effect) };
    let mut record = DecisionRecord::new(call, kind, Some(decider), SystemClock.now());
    record.refused = Some(Refusal { outcome: Outcome::PolicyDenied, mismatch: Some(mismatch), violations: Vec::new() });
    store.append(AuditRecord::from(record)).await?;
    Err(barred(mismatch))
}

fn barred(mismatch: Mismatch) -> Failure {
    let failure = Failure::from(&ResumeError::NotAllowed(mismatch));
    let hint = match mismatch {
        Mismatch::OwnCall => "; somebody else decides with --as NAME",
        Mismatch::DeciderRole => "; name it with --role NAME (see `approvals show`)",
        _ => "",
    };
    Failure { message: format!("{}{hint}", failure.message), ..failure }
}

/// How far a decision has come.
enum State {
    /// It is in the run's post.
    Posted,
    /// The call has begun.
    Running,
    /// A graph waits with its next call.
    Waits,
    /// It did not fit, and the call still waits.
    Refused(Refusal),
    /// It was left out, because the call did not wait for it.
    Dropped,
    Ended(Outcome),
}

/// Looks what became of a decision.
struct Look<'a> {
    store: &'a dyn Store,
    call: &'a PendingCall,
    post: Key,
    /// The records of the call that are newer than the decision.
    records: RecordFilter,
}

impl Look<'_> {
    async fn wait(&self, time: Duration) -> Result<State, Failure> {
        let until = Instant::now() + time;
        loop {
            let state = self.state().await?;
            if !matches!(state, State::Posted | State::Running) || Instant::now() >= until {
                return Ok(state);
            }
            sleep(LOOK).await;
        }
    }

    async fn state(&self) -> Result<State, Failure> {
        let is_posted = self.store.read(std::slice::from_ref(&self.post)).await?.pop().flatten().is_some();
        let waits = self.store.pending(&Key::of_waiting(self.call)).await?;
        let records = self.store.records(&self.records).await?;
        let still = match waits {
            Some(waits) if !waits.is_same(self.call) => return Ok(State::Waits),
            waits => waits.is_some(),
        };
        let mut state = match (still, is_posted) {
            (false, _) => State::Running,
            (true, true) => State::Posted,
            (true, false) => State::Dropped,
        };
        for sealed in records {
            match sealed.record {
                AuditRecord::Call(record) => state = State::Ended(record.outcome),
                AuditRecord::Decision(record) => {
                    if let Some(refused) = record.refused.filter(|_| still) {
                        state = State::Refused(refused);
                    }
                }
            }
        }
        Ok(state)
    }
}

fn tell(
    cli: &Cli<'_>,
    call: &PendingCall,
    run: &StoredRun,
    (kind, wait): (DecisionKind, Option<Duration>),
    state: &State,
) -> Result<Exit, Failure> {
    let (app, run_id) = (cli.app.name, terminal::safe(&call.run_id));
    let (word, outcome) = match state {
        State::Posted => ("posted", None),
        State::Running => ("running", None),
        State::Waits => ("waits", None),
        State::Ended(outcome) => ("ended", Some(*outcome)),
        State::Refused(refusal) => return Err(unfit(refusal)),
        State::Dropped => {
            let text = "the decision was left out, because the call did not wait for it in its run; look again: \
                        `approvals list`";
            return Err(Failure::failed(text).code("not_taken"));
        }
    };
    if cli.settings.json {
        let (id, run) = (call.call_id.as_str(), &*call.run_id);
        let told = Told { call: id, run, decision: kind.code(), state: word, outcome };
        terminal::line(&json(&told)?);
    } else {
        let code = kind.code();
        terminal::line(&match state {
            State::Ended(outcome) => format!("{code}: the call ended as {outcome}"),
            State::Waits => format!("{code}: the graph continued, and waits with its next call"),
            State::Running => format!("{code}: the call runs"),
            _ if run.is_served() => {
                format!("{code}: the MCP server that has the run {run_id} carries it out")
            }
            _ if run.is_held(SystemClock.now()) => {
                format!("{code}: the worker that has the run {run_id} carries it out")
            }
            _ => format!("{code}: the next worker that takes the run {run_id} carries it out"),
        });
    }
    match state {
        State::Ended(outcome) => Ok(Exit::of(*outcome)),
        State::Waits => Ok(Exit::ApprovalRequired),
        _ => match wait {
            None if run.is_served() => Ok(Exit::Done),
            None => {
                terminal::note(&format!("without a worker: {app} chat --continue {run_id}"));
                Ok(Exit::Done)
            }
            Some(_) => {
                let look = if run.is_served() { "approvals list".to_owned() } else { format!("worker show {run_id}") };
                let text = format!("the call has not ended in the time that was waited; nothing is lost: {app} {look}");
                Err(Failure::failed(text).code("timeout"))
            }
        },
    }
}

/// A decision that reached the gate and did not fit.
fn unfit(Refusal { outcome, mismatch, violations }: &Refusal) -> Failure {
    let place = |violation: &RecordedViolation| format!(" at {}: {}", violation.pointer, violation.keyword);
    let places: Vec<_> = violations.iter().map(place).collect();
    let why = mismatch.map_or_else(|| outcome.to_string(), |mismatch| mismatch.to_string());
    let message = format!("the decision does not fit, and the call still waits: {why}{}", places.join(","));
    let exit = if violations.is_empty() { Exit::Denied } else { Exit::Invalid };
    Failure { exit, code: "approval_mismatch", message }
}
