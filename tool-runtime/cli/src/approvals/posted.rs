//! Decisions on calls of the store. If another process can continue the run, the decision is posted to the run as a
//! message. Otherwise this process carries the decision out. A client's answer is always posted; it is refused if the
//! store does not have the run.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep};
use tool_runtime::agent::{Input, RunQueue};
use tool_runtime::call::{CallId, ClientAnswer, DecisionError, Question, Violation};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{
    AuditRecord, DecisionKind, DecisionRecord, Key, PendingCall, RecordFilter, Store, StoredDocument, StoredRun,
};
use tool_runtime::{Outcome, RunOptions, ToolExecResult};

use crate::approvals::decision::{By, Decision, exit_of};
use crate::approvals::waiting;
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{attend, terminal};

/// The interval at which `--wait` checks the state of a decision.
const LOOK: Duration = Duration::from_millis(100);
/// The maximum number of records with one call id that are read.
const MANY: usize = 64;

/// The state of a posted decision, as `--json` prints it.
#[derive(Serialize)]
struct Report<'a> {
    call: &'a str,
    run: &'a str,
    decision: &'static str,
    state: &'static str,
    /// The outcome of the call; `None` if the call has not ended yet.
    outcome: Option<Outcome>,
}

/// Carries out a decision, or posts it to the run of the call, and prints the result or the state of the decision. With
/// `--wait`, waits for the end of the call.
pub(super) async fn decide(
    cli: &Cli<'_>,
    (id, call, question): (&str, &PendingCall, &Question),
    decision: Decision,
    by: &By,
    endpoint: &Endpoint,
) -> Result<Exit, Failure> {
    no_model(endpoint)?;
    let gate = cli.open().await?;
    let store = Arc::clone(&gate.store);
    if call.is_expired(store.now().await?) {
        return Err(waiting::unknown(id));
    }
    let seen = last_record(&*store, call).await?;
    let queue = RunQueue::new(&gate.runner).options(gate.connected(RunOptions::new()));
    let (kind, delivery) = match decision {
        Decision::Approval(decision) => {
            let decider = cli.named_decider(call, &by.who)?;
            let kind = decision.kind();
            let decided = Box::pin(queue.decide(&call.run_id, question, decision, &decider)).await;
            (kind, decided.map_err(|error| refused(id, error))?)
        }
        Decision::Answer(output) => {
            let input = Input::new().answer(ClientAnswer::value(call.call_id.clone(), output));
            let posted = queue.post(&call.run_id, call.tenant.as_deref(), &input).await;
            posted.map_err(|error| match error {
                ResumeError::UnknownRun => Failure::usage(format!(
                    "another program continues the run {} of this call; answer the call there",
                    terminal::safe(&call.run_id)
                ))
                .code("not_shared"),
                error => refused(id, error),
            })?;
            (DecisionKind::ClientResult, None)
        }
    };
    if let Some(result) = delivery {
        return done(cli, kind == DecisionKind::Denied, &result);
    }
    follow(cli, &*store, (call, question), seen, (kind, by.wait)).await
}

pub(super) fn no_model(endpoint: &Endpoint) -> Result<(), Failure> {
    match endpoint.model_url {
        Some(_) => Err(Failure::usage("a worker continues this run, with its own model; leave `--model-url` out")),
        None => Ok(()),
    }
}

fn of_call(call: &PendingCall) -> RecordFilter {
    RecordFilter::call(Arc::clone(&call.run_id), call.call_id.clone())
}

/// Returns the position of a call's last record before the decision; 0 for a call without a record.
pub(super) async fn last_record(store: &dyn Store, call: &PendingCall) -> Result<u64, Failure> {
    Ok(store.records(&of_call(call)).await?.last().map_or(0, |record| record.position))
}

/// Waits for the result of a posted decision for the time of `--wait`, and prints the state of the decision.
pub(super) async fn follow(
    cli: &Cli<'_>,
    store: &dyn Store,
    (call, question): (&PendingCall, &Question),
    seen: u64,
    (kind, wait): (DecisionKind, Option<Duration>),
) -> Result<Exit, Failure> {
    let look = Look { store, call, question, records: RecordFilter { after: seen, ..of_call(call) } };
    let state = match wait {
        None => PostState::Posted,
        Some(time) => attend::interruptible(look.wait(time)).await.unwrap_or(Ok(PostState::Posted))?,
    };
    let run = look.run().await?.ok_or_else(|| waiting::unknown(call.call_id.as_str()))?;
    let is_held = run.is_held(store.now().await?);
    print_state(cli, call, (&run, is_held), (kind, wait), &state)
}

/// Posts a decision on a call that no longer waits, or that waits in another tenant, so that its run records the
/// refusal. `id` is `CALL`, `RUN/CALL` or the id of a question; a call id that several runs have is ignored.
pub(super) async fn late(cli: &Cli<'_>, id: &str, decision: &ApprovalDecision, by: &By) -> Result<(), Failure> {
    let Some(store) = cli.kept_records().await? else { return Ok(()) };
    let (question, tenant) = (id.parse::<Question>().ok(), cli.party().tenant);
    let name = question.as_ref().map_or(id, |question| question.call_id().as_str());
    let of_run = name.match_indices('/').map(|(at, _)| (Some(&name[..at]), &name[at + 1..]));
    let names: Vec<_> = std::iter::once((None, name)).chain(of_run).collect();
    for &(run, call) in &names {
        let filter =
            RecordFilter { run_id: run.map(Into::into), call_id: Some(CallId::new(call)), ..RecordFilter::default() };
        let filter = RecordFilter { decisions: Some(false), tenant: tenant.clone(), limit: Some(MANY), ..filter };
        let mut runs: Vec<_> =
            store.calls(&filter).await?.into_iter().filter(|record| record.tenant == tenant).collect();
        runs.dedup_by(|one, other| one.run_id == other.run_id);
        let [record] = &runs[..] else { continue };
        // The question of a call that no longer waits is unknown. A question with a digest of zeros has the call's id
        // but matches no real question.
        let unknown = || format!("{}.{}", "0".repeat(64), record.tool_call_id).parse().ok();
        let Some(question) = question.clone().or_else(unknown) else { continue };
        return refuse(cli, &record.run_id, &question, decision, by).await;
    }
    for (run, call) in names {
        let filter = RecordFilter { call_id: Some(CallId::new(call)), ..RecordFilter::default() };
        let calls = store.pending_calls(&RecordFilter { run_id: run.map(Into::into), ..filter }).await?;
        let is_meant = |call: &PendingCall| question.as_ref().is_none_or(|asked| call.question() == *asked);
        let foreign = calls.into_iter().flatten().filter(|call| call.tenant != tenant && is_meant(call));
        let foreign: Vec<_> = foreign.collect();
        // The call waits in another tenant. Its run records the refusal and reports it to operators.
        if let [call] = &foreign[..] {
            return refuse(cli, &call.run_id, &call.question(), decision, by).await;
        }
    }
    Ok(())
}

/// Posts a decision that the run will refuse and record. Does not return the refusal, because the caller has its own
/// failure for the person.
async fn refuse(
    cli: &Cli<'_>,
    run: &str,
    question: &Question,
    decision: &ApprovalDecision,
    by: &By,
) -> Result<(), Failure> {
    let decider = cli.decider(by.who.decider.as_deref(), by.who.reason.as_deref());
    let queue = RunQueue::new(&cli.open().await?.runner);
    match queue.decide(run, question, decision.clone(), &decider).await {
        Err(ResumeError::Store(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints the outcome of a call that this process decided.
pub(super) fn done(cli: &Cli<'_>, denies: bool, result: &ToolExecResult) -> Result<Exit, Failure> {
    if cli.settings.json {
        terminal::line(&json(result)?);
    } else {
        terminal::line(&terminal::safe_lines(&result.to_model()));
    }
    let broken = result.error().is_some_and(|error| !error.errors.is_empty());
    Ok(if result.outcome() == Outcome::ApprovalMismatch && broken {
        Exit::Invalid
    } else {
        exit_of(denies, result.outcome())
    })
}

/// Converts the error of a refused decision to a failure of the command.
pub(crate) fn refused(id: &str, error: ResumeError) -> Failure {
    match error {
        ResumeError::UnknownRun | ResumeError::NotWaiting(_) => waiting::unknown(id),
        ResumeError::NotAllowed(mismatch) => barred(mismatch),
        error => error.into(),
    }
}

fn barred(mismatch: DecisionError) -> Failure {
    let failure = Failure::from(&ResumeError::NotAllowed(mismatch));
    let hint = match mismatch {
        DecisionError::OwnCall => "; name another decider with --as NAME",
        DecisionError::Question => " (`approvals show`)",
        DecisionError::SameDecider => " (`approvals list` shows who has)",
        DecisionError::DeciderRole => "; name it with --role NAME (see `approvals show`)",
        _ => "",
    };
    Failure { message: format!("{}{hint}", failure.message), ..failure }
}

/// The state of a posted decision.
enum PostState {
    /// The decision waits for the process that has or takes the run.
    Posted,
    /// The call has begun.
    Running,
    /// The call waits with another question. For example, its graph (an agent or script that runs as a tool) continued
    /// to the next call, or its arguments were edited and need the approval of other deciders.
    Waits,
    /// The decision was invalid, and the call still waits.
    Refused(Box<DecisionRecord>),
    /// The run no longer has the decision, and the call still waits with the same question.
    Dropped,
    Ended(Outcome),
}

/// Looks up the state of a posted decision.
struct Look<'a> {
    store: &'a dyn Store,
    call: &'a PendingCall,
    question: &'a Question,
    /// The records of the call that are newer than the decision.
    records: RecordFilter,
}

impl Look<'_> {
    async fn wait(&self, time: Duration) -> Result<PostState, Failure> {
        let until = Instant::now() + time;
        loop {
            let state = self.state().await?;
            if !matches!(state, PostState::Posted | PostState::Running) || Instant::now() >= until {
                return Ok(state);
            }
            sleep(LOOK).await;
        }
    }

    async fn run(&self) -> Result<Option<StoredRun>, Failure> {
        let stored = self.store.read(&[Key::run_head(Arc::clone(&self.call.run_id))]).await?.pop().flatten();
        Ok(stored.as_ref().and_then(StoredDocument::as_run).cloned())
    }

    fn key(&self) -> Key {
        let PendingCall { run_id, tenant, principal, call_id, .. } = self.call;
        Key::waiting(Arc::clone(run_id), tenant.as_deref(), principal.as_deref(), call_id)
    }

    async fn state(&self) -> Result<PostState, Failure> {
        let is_posted = self.run().await?.is_some_and(|run| run.is_answered(self.question));
        let waits = self.store.pending(&self.key()).await?;
        let records = self.store.records(&self.records).await?;
        let still = match waits {
            Some(waits) if waits.question() != self.call.question() => return Ok(PostState::Waits),
            waits => waits.is_some(),
        };
        let mut state = match (still, is_posted) {
            (false, _) => PostState::Running,
            (true, true) => PostState::Posted,
            (true, false) => PostState::Dropped,
        };
        for sealed in records {
            match sealed.record {
                AuditRecord::Call(record) => state = PostState::Ended(record.outcome),
                AuditRecord::Decision(record) if still && record.refused().is_some() => {
                    state = PostState::Refused(record);
                }
                _ => {}
            }
        }
        Ok(state)
    }
}

fn print_state(
    cli: &Cli<'_>,
    call: &PendingCall,
    (run, is_held): (&StoredRun, bool),
    (kind, wait): (DecisionKind, Option<Duration>),
    state: &PostState,
) -> Result<Exit, Failure> {
    let (run_id, same) = (terminal::safe(&call.run_id), cli.same_options());
    let of_run = |command| cli.command(command, (&call.run_id, ""), &same);
    let (word, outcome) = match state {
        PostState::Posted => ("posted", None),
        PostState::Running => ("running", None),
        PostState::Waits => ("waits", None),
        PostState::Ended(outcome) => ("ended", Some(*outcome)),
        PostState::Refused(refusal) => return Err(invalid(refusal)),
        PostState::Dropped => {
            let text = "the run dropped the decision, and the call still waits; look at it with `approvals show`, and \
                        decide again";
            return Err(Failure::failed(text).code("not_taken"));
        }
    };
    if cli.settings.json {
        let (id, run) = (call.call_id.as_str(), &*call.run_id);
        let report = Report { call: id, run, decision: kind.code(), state: word, outcome };
        terminal::line(&json(&report)?);
    } else {
        let code = kind.code();
        terminal::line(&match state {
            PostState::Ended(outcome) => format!("{code}: the call ended as {outcome}"),
            PostState::Waits if call.graph.is_some() => {
                format!("{code}: the graph continued, and waits with its next call")
            }
            PostState::Waits => format!("{code}: the call waits with another question; see `approvals show`"),
            PostState::Running => format!("{code}: the call runs"),
            _ if run.is_served() => {
                format!(
                    "{code}: the MCP server that has the run {run_id} carries it out, once a client waits for the call"
                )
            }
            _ if is_held => format!("{code}: the worker that has the run {run_id} carries it out"),
            _ => format!("{code}: the next worker that takes the run {run_id} carries it out"),
        });
    }
    match state {
        PostState::Ended(outcome) => Ok(exit_of(kind == DecisionKind::Denied, *outcome)),
        PostState::Waits => Ok(Exit::ApprovalRequired),
        _ => match wait {
            None if run.is_served() => Ok(Exit::Done),
            None => {
                terminal::note(&format!("if no worker runs, continue the run with: {}", of_run("chat --continue")));
                Ok(Exit::Done)
            }
            Some(_) => {
                let look = if run.is_served() {
                    format!("{} approvals list{same}", cli.app.name)
                } else {
                    of_run("worker show")
                };
                let text = format!("the call did not end within --wait; the decision is stored, see: {look}");
                Err(Failure::failed(text).code("timeout"))
            }
        },
    }
}

/// Returns the failure for a decision that the gate refused as invalid.
fn invalid(decision: &DecisionRecord) -> Failure {
    let violations = decision.violations();
    let place = |violation: &Violation| format!(" at {}: {}", violation.pointer, violation.keyword);
    let places: Vec<_> = violations.iter().map(place).collect();
    let outcome = || decision.refused().map(|outcome| outcome.to_string()).unwrap_or_default();
    let why = decision.mismatch().map_or_else(outcome, |mismatch| mismatch.to_string());
    let message = format!("the decision does not fit the call, which still waits: {why}{}", places.join(","));
    let exit = if violations.is_empty() { Exit::Denied } else { Exit::Invalid };
    Failure { exit, code: "approval_mismatch", message }
}
