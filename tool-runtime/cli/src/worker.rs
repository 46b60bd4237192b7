//! `worker`: continues, adds and shows the conversations of a store, and posts to them.

use std::sync::Arc;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde::Serialize;
use tool_runtime::agent::{Agent, Input, RunQueue, SavedConversation, WaitingCall, Worker};
use tool_runtime::call::{CallId, ClientAnswer, Question, RunSummary, Suspension};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{Key, PendingCall, Store, StoreError, StoredRun};
use tool_runtime::wire::Message;

use crate::accounts::Account;
use crate::endpoint::Endpoint;
use crate::exit::{Exit, Failure};
use crate::session::{Cli, DeciderArgs};
use crate::terminal::json;
use crate::values::at_least_one;
use crate::{approvals, attend, chat, input, log, places, terminal, values};

fn lease(text: &str) -> Result<Duration, String> {
    let lease = values::time(text)?;
    if lease < Duration::from_secs(1) { Err("a lease is at least one second: `1s`".to_owned()) } else { Ok(lease) }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    pub(crate) action: Option<WorkerAction>,
    /// How many conversations to continue at the same time
    #[arg(long, value_name = "N", default_value = "8", value_parser = at_least_one)]
    pub(crate) concurrency: usize,
    /// How long a conversation stays leased to this worker without a renewal, for example 30s; at least one second
    #[arg(long, value_name = "TIME", value_parser = lease, default_value = "30s")]
    pub(crate) lease: Duration,
    /// How many conversations of one tenant all workers continue at the same time; no limit by default. Set the same
    /// number for all workers
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) runs_per_tenant: Option<usize>,
    /// Skip conversations that began with other instructions, another catalog or another policy
    #[arg(long)]
    pub(crate) leave_other_versions: bool,
    /// How long to wait for an unavailable database when the worker starts
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "30s")]
    pub(crate) wait_for_store: Duration,
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkerAction {
    /// Put a new conversation in the store for a worker to continue, and print its id
    Put {
        /// The user's message; `-` is standard input
        prompt: String,
        /// The id of the conversation's run; a fresh one by default
        #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        run: Option<String>,
    },
    /// Post a message, decisions or answers to a conversation
    Post {
        /// The run, as `worker put` printed it
        run: String,
        /// The user's message; `-` is standard input
        prompt: Option<String>,
        /// Approve this call with its arguments unchanged
        #[arg(long, value_name = "CALL")]
        approve: Vec<String>,
        /// Deny this call
        #[arg(long, value_name = "CALL")]
        deny: Vec<String>,
        /// Answer a client call: its id and the output as JSON, `-` or `@FILE`
        #[arg(long, num_args = 2, value_names = ["CALL", "JSON"], action = clap::ArgAction::Append)]
        answer: Vec<String>,
        #[command(flatten)]
        who: DeciderArgs,
    },
    /// Show a conversation: its state, its waiting calls, the model's last message, its spending, and how much of the
    /// budgets of its run, principal and tenant is used
    Show {
        /// The run
        run: String,
    },
}

pub(super) async fn worker(cli: &Cli<'_>, command: WorkerArgs) -> Result<Exit, Failure> {
    if cli.settings.store.is_none() {
        return Err(missing());
    }
    match command.action {
        None => {
            log::report_lost_records(cli.json());
            work(cli, command).await
        }
        Some(WorkerAction::Put { prompt, run }) => put(cli, &prompt, run).await,
        Some(WorkerAction::Post { run, prompt, approve, deny, answer, who }) => {
            let denials = deny.into_iter().map(|call| (call, ApprovalDecision::Deny(None)));
            let decisions = approve.into_iter().map(|call| (call, ApprovalDecision::Approve)).chain(denials);
            post(cli, &run, prompt.as_deref(), decisions.collect(), (&answer, &who)).await
        }
        Some(WorkerAction::Show { run }) => show(cli, &run).await,
    }
}

fn text(prompt: &str) -> Result<String, Failure> {
    if prompt == "-" { input::text(input::stdin()?, "standard input") } else { Ok(prompt.to_owned()) }
}

fn missing() -> Failure {
    Failure::usage("name the store that workers share: --store sqlite:FILE or postgres://..")
}

/// Continues conversations until a signal to end the process. Then finishes the current steps, and releases all leases.
async fn work(cli: &Cli<'_>, command: WorkerArgs) -> Result<Exit, Failure> {
    let agent = chat::agent(&cli.settings.endpoint(&command.endpoint))?;
    let agent = agent
        .ok_or_else(|| Failure::usage(format!("a worker needs a model: give {}", places::model_url(cli.app.name))))?;
    let Some(opened) = crate::store::opened(cli, command.wait_for_store, attend::end_signal()).await else {
        return Ok(Exit::Done);
    };
    let gate = opened?;
    let runner = gate.runner.clone();
    let worker = Worker::new(agent, runner).name(cli.app.name).concurrency(command.concurrency).lease(command.lease);
    let worker = worker.leave_other_versions(command.leave_other_versions);
    let worker = command.runs_per_tenant.into_iter().fold(worker, Worker::runs_per_tenant);
    let worker = worker.patience(command.wait_for_store).prepare(move |_, options| gate.connected(options));
    terminal::note("the worker runs; Ctrl-C or SIGTERM ends it when its steps are done");
    worker.run(attend::end_signal()).await.map_err(|error| match error {
        StoreError::ReadOnly(_) => {
            let text =
                "the database cannot be written to, so no conversation can be continued: name the primary server";
            Failure::failed(text).code(error.code())
        }
        error => error.into(),
    })?;
    Ok(Exit::Done)
}

async fn put(cli: &Cli<'_>, prompt: &str, run: Option<String>) -> Result<Exit, Failure> {
    let gate = cli.open().await?;
    let mut options = gate.options(None);
    let prompt = text(prompt)?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the message is empty; write it: worker put \"..\""));
    }
    if let Some(id) = run {
        options = options.run_id(id);
    }
    let agent: Agent = chat::offline();
    let mut conversation = agent.converse(gate.runner.run(options));
    let accepted = conversation.accept(Input::from(prompt)).await;
    accepted.map_err(|error| Failure::failed(error.to_string()).code(error.code()))?;
    let queued = RunQueue::new(&gate.runner).enqueue(&conversation.save().await?).await;
    queued.map_err(|error| match error {
        ResumeError::Store(StoreError::Duplicate) => {
            let id = terminal::safe(conversation.run().id());
            Failure::usage(format!("the store has a run `{id}` already; leave --run out, or choose another id"))
                .code("store_duplicate")
        }
        error => error.into(),
    })?;
    terminal::line(&terminal::safe(conversation.run().id()));
    Ok(Exit::Done)
}

/// Posts to a run. Each decision or answer is checked against a waiting call first, because the worker that takes the
/// message later cannot report a mistake to this person.
async fn post(
    cli: &Cli<'_>,
    run: &str,
    prompt: Option<&str>,
    decisions: Vec<(String, ApprovalDecision)>,
    (answers, who): (&[String], &DeciderArgs),
) -> Result<Exit, Failure> {
    let mut input = Input::new();
    if prompt.is_none() && decisions.is_empty() && answers.is_empty() {
        return Err(Failure::usage(
            "nothing to post; add a message, --approve CALL, --deny CALL or --answer CALL JSON",
        ));
    }
    if let Some(prompt) = prompt {
        let prompt = text(prompt)?;
        if prompt.trim().is_empty() {
            return Err(Failure::usage("the message is empty; write it: worker post RUN \"..\""));
        }
        input = input.text(prompt);
    }
    cli.existing_store().await?.ok_or_else(missing)?;
    let (gate, tenant) = (cli.open().await?, cli.party().tenant);
    let (store, queue) = (Arc::clone(&gate.store), RunQueue::new(&gate.runner));
    let (found, _) = queue.find(run, tenant.as_deref()).await.map_err(|error| unknown(run, error))?;
    // The key contains the principal, because calls of different principals can have the same ids.
    let key = |call: &str| Key::waiting(run, tenant.as_deref(), found.principal.as_deref(), &CallId::new(call));
    // A call can be named by its id, or by the id of its question.
    let call_of = |named: &String| match named.parse::<Question>() {
        Ok(question) => question.call_id().to_string(),
        Err(_) => named.clone(),
    };
    let mut decided = std::collections::HashSet::new();
    let mut calls = decisions.iter().map(|(named, _)| named).chain(answers.iter().step_by(2)).map(call_of);
    if let Some(twice) = calls.find(|call| !decided.insert(call.clone())) {
        let id = terminal::safe(&twice);
        return Err(Failure::usage(format!(
            "the call `{id}` is decided twice; write one of --approve, --deny, --answer"
        )));
    }
    for (named, decision) in decisions {
        let question = named.parse::<Question>().ok();
        let call = question.as_ref().map_or(named.as_str(), |question| question.call_id().as_str());
        let pending = waiting(&*store, key(call), (&tenant, Suspension::Approval), call).await?;
        let decider = cli.named_decider(&pending, who)?;
        let is_approval = matches!(decision, ApprovalDecision::Approve);
        if is_approval && question.is_none() && approvals::asked_before(cli, &pending).await? {
            return Err(approvals::asks_anew(cli, call, &pending.question()));
        }
        input = input.decide(&question.unwrap_or_else(|| pending.question()), decision, &decider);
    }
    for pair in answers.chunks_exact(2) {
        let output = input::json_value(&pair[1])?;
        waiting(&*store, key(&pair[0]), (&tenant, Suspension::Client), &pair[0]).await?;
        input = input.answer(ClientAnswer::value(pair[0].as_str(), output));
    }
    queue.post(run, tenant.as_deref(), &input).await.map_err(|error| match error {
        ResumeError::UnknownRun => unknown(run, error),
        ResumeError::NotWaiting(call) => approvals::unknown(call.as_str()),
        error => approvals::refused(run, error),
    })?;
    Ok(Exit::Done)
}

/// Returns the waiting call of the tenant, if it waits for this kind of message and has not expired.
async fn waiting(
    store: &dyn Store,
    key: Key,
    (tenant, suspension): (&Option<Arc<str>>, Suspension),
    id: &str,
) -> Result<PendingCall, Failure> {
    let now = store.now().await?;
    let fits = |call: &PendingCall| call.suspension == suspension && call.tenant == *tenant && !call.is_expired(now);
    store.pending(&key).await?.filter(fits).ok_or_else(|| approvals::unknown(id))
}

/// Returns the failure for a run that was not found. An unknown run and a run of another tenant get the same message.
fn unknown(run: &str, error: ResumeError) -> Failure {
    match error {
        ResumeError::UnknownRun => {
            let text = format!(
                "there is no run `{}` in this tenant; `worker put` prints the id of a run, and --tenant names the tenant",
                terminal::safe(run)
            );
            Failure::usage(text).code("not_found")
        }
        error => error.into(),
    }
}

/// A conversation as `--json` prints it.
#[derive(Serialize)]
struct Shown<'a> {
    run: &'a str,
    state: &'a str,
    /// Whether a worker holds the conversation.
    held: bool,
    /// Whether workers leave the conversation alone until `store release`, because a restored backup lacks its records.
    held_back: bool,
    /// The number of posted messages that the run has not taken.
    posts: u32,
    due: Option<String>,
    waiting: Vec<&'a WaitingCall>,
    text: String,
    summary: &'a RunSummary,
    /// The budgets of the policy, each with the used amount.
    accounts: Vec<Account>,
}

async fn show(cli: &Cli<'_>, run: &str) -> Result<Exit, Failure> {
    let (store, tenant) = (cli.existing_store().await?.ok_or_else(missing)?, cli.party().tenant);
    let found = SavedConversation::find(&*store, run, tenant.as_deref()).await;
    let (stored, conversation) = found.map_err(|error| unknown(run, error))?;
    let history = conversation.history();
    let last = history.iter().rev().find(|message| matches!(message, Message::Assistant(_)));
    let snapshot = conversation.run();
    let balances = snapshot.balances(&cli.policy()?, &*store).await?;
    let shown = Shown {
        run,
        state: if stored.state.is_empty() { "new" } else { &stored.state },
        held: stored.is_held(store.now().await?),
        held_back: stored.is_held_back(),
        posts: stored.posts(),
        due: stored.due.map(|due| format!("{due:.0}")),
        waiting: conversation.waiting().collect(),
        text: last.map(Message::text).unwrap_or_default(),
        summary: snapshot.summary(),
        accounts: balances.into_iter().map(Account::from).collect(),
    };
    if cli.settings.json {
        terminal::line(&json(&shown)?);
    } else {
        print(&shown);
    }
    Ok(exit(&stored, &conversation))
}

fn print(shown: &Shown<'_>) {
    let has = match (shown.held_back, shown.held) {
        (true, _) => ", and held back until `store release`",
        (_, true) => ", and a worker holds it",
        _ => "",
    };
    terminal::line(&format!("{}  {}{has}", terminal::safe(shown.run), terminal::safe(shown.state)));
    for call in &shown.waiting {
        terminal::line(&format!("  {} waits: {}", terminal::safe(call.id.as_str()), terminal::safe(&call.name)));
    }
    if shown.posts > 0 {
        terminal::line(&format!("  posted and not taken yet: {}", shown.posts));
    }
    if !shown.text.is_empty() {
        terminal::line(&terminal::safe_lines(&shown.text));
    }
    let RunSummary { calls, usage, cost, .. } = shown.summary;
    let calls: Vec<_> = calls.iter().map(|(outcome, times)| format!("{times} {outcome}")).collect();
    let calls = if calls.is_empty() { "none".to_owned() } else { calls.join(", ") };
    terminal::line(&format!("  calls: {calls}; tokens: {}; cost: {cost}", usage.total()));
    shown.accounts.iter().for_each(|account| terminal::line(&format!("  budget of the {}", account.describe())));
}

/// Returns the exit for the state of a conversation. Unless the conversation runs, it depends on the calls that wait.
fn exit(stored: &StoredRun, conversation: &SavedConversation) -> Exit {
    if &*stored.state == "running" {
        return Exit::Done;
    }
    let waits = |suspension| conversation.waiting().any(|call| call.suspension == suspension);
    if waits(Suspension::Approval) {
        Exit::ApprovalRequired
    } else if waits(Suspension::Client) {
        Exit::ClientRequired
    } else {
        Exit::Done
    }
}

/// Converts an error about a run of the store. Another program may hold the run.
impl From<ResumeError> for Failure {
    fn from(error: ResumeError) -> Self {
        match error {
            ResumeError::Store(error) => error.into(),
            ResumeError::Invalid(_) => Self { exit: Exit::Invalid, code: error.code(), message: error.to_string() },
            error => Self::usage(error.to_string()).code(error.code()),
        }
    }
}
