//! `worker`: continues the conversations of a store, puts them in, posts to them and shows them.

use std::sync::Arc;

use serde::Serialize;

use crate::agent::{Agent, ClientAnswer, Incoming, QueueError, RunQueue, SavedConversation, WaitingCall, Worker};
use crate::call::{CallId, RunSummary, Suspension};
use crate::cli::accounts::Account;
use crate::cli::args::{self, Who, WorkerAction};
use crate::cli::call::json;
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;
use crate::cli::{accounts, approvals, chat, input, terminal};
use crate::runner::ApprovalDecision;
use crate::store::{Clock as _, Key, PendingCall, Store, StoreError, StoredRun, SystemClock};
use crate::wire::Message;

pub(super) async fn worker(cli: &Cli<'_>, command: args::Worker) -> Result<Exit, Failure> {
    if cli.settings.store.is_none() {
        return Err(missing());
    }
    match command.action {
        None => work(cli, command).await,
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

/// Works until the process is told to end; then finishes the steps that have begun, and releases its leases.
async fn work(cli: &Cli<'_>, command: args::Worker) -> Result<Exit, Failure> {
    let agent = chat::agent(&cli.settings.endpoint(&command.endpoint))?;
    let agent = agent.ok_or_else(|| Failure::usage("a worker needs a model: give `--model-url URL`"))?;
    let gate = cli.open().await?;
    let runner = gate.runner.clone();
    let worker = Worker::new(agent, runner).name(cli.app.name).concurrency(command.concurrency).lease(command.lease);
    let worker = worker.prepare(move |_, options| gate.connected(options));
    terminal::note("the worker runs; Ctrl-C or SIGTERM ends it when its steps are done");
    worker.run(told_to_end()).await?;
    Ok(Exit::Done)
}

/// Resolves when the process is told to end.
pub(super) async fn told_to_end() {
    #[cfg(unix)]
    if let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
        std::future::poll_fn(|context| {
            if terminated.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(());
            }
            Future::poll(interrupted.as_mut(), context).map(drop)
        })
        .await;
        return;
    }
    drop(tokio::signal::ctrl_c().await);
}

async fn put(cli: &Cli<'_>, prompt: &str, run: Option<String>) -> Result<Exit, Failure> {
    let gate = cli.open().await?;
    let mut options = gate.options(None);
    let prompt = text(prompt)?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage("write what the user says: worker put \"..\""));
    }
    if let Some(id) = run {
        options = options.run_id(id);
    }
    let agent: Agent = chat::offline();
    let mut conversation = agent.converse(gate.runner.run(options));
    let accepted = conversation.accept(Incoming::from(prompt)).await;
    accepted.map_err(|error| Failure::failed(error.to_string()).code(error.code()))?;
    let queued = RunQueue::new(cli.store().await?).enqueue(&conversation.save().await?).await;
    queued.map_err(|error| match error {
        QueueError::Store(StoreError::Duplicate) => {
            let id = terminal::safe(conversation.run().id());
            Failure::usage(format!("the store has a run `{id}` already; leave --run out, or choose another id"))
                .code("store_duplicate")
        }
        error => error.into(),
    })?;
    terminal::line(&terminal::safe(conversation.run().id()));
    Ok(Exit::Done)
}

/// Posts to a run. A decision or an answer has to be for a call that waits for it now: later nobody is told.
async fn post(
    cli: &Cli<'_>,
    run: &str,
    prompt: Option<&str>,
    decisions: Vec<(String, ApprovalDecision)>,
    (answers, who): (&[String], &Who),
) -> Result<Exit, Failure> {
    let mut incoming = Incoming::new();
    if prompt.is_none() && decisions.is_empty() && answers.is_empty() {
        return Err(Failure::usage("say what to post: a message, --approve CALL, --deny CALL or --answer CALL JSON"));
    }
    if let Some(prompt) = prompt {
        let prompt = text(prompt)?;
        if prompt.trim().is_empty() {
            return Err(Failure::usage("write what the user says: worker post RUN \"..\""));
        }
        incoming = incoming.text(prompt);
    }
    let (store, tenant) = (cli.existing_store().await?.ok_or_else(missing)?, cli.party().tenant);
    let queue = RunQueue::new(Arc::clone(&store));
    let (found, _) = queue.find(run, tenant.as_deref()).await.map_err(|error| unknown(run, error))?;
    // What somebody else made wait under the same ids is none of this run's.
    let key = |call: &str| Key::waiting(run, tenant.as_deref(), found.principal.as_deref(), &CallId::new(call));
    let mut finished = Vec::new();
    for (call, decision) in decisions {
        let pending = waiting(&*store, key(&call), (&tenant, Suspension::Approval), &call).await?;
        let decider = cli.named_decider(&pending, who)?;
        approvals::check(cli, &*store, &pending, &decision, &decider).await?;
        incoming = incoming.decide(call, decision, &decider);
        finished.push(pending);
    }
    for pair in answers.chunks_exact(2) {
        let output = input::json_value(&pair[1])?;
        finished.push(waiting(&*store, key(&pair[0]), (&tenant, Suspension::Client), &pair[0]).await?);
        incoming = incoming.answer(ClientAnswer::value(pair[0].as_str(), output));
    }
    let mut ids = std::collections::HashSet::new();
    if let Some(twice) = finished.iter().find(|call| !ids.insert(&call.call_id)) {
        let id = terminal::safe(twice.call_id.as_str());
        return Err(Failure::usage(format!(
            "the call `{id}` is decided twice; write one of --approve, --deny, --answer"
        )));
    }
    if finished.is_empty() {
        queue.post(run, tenant.as_deref(), &incoming).await.map_err(|error| unknown(run, error))?;
        return Ok(Exit::Done);
    }
    match queue.post_for(&finished, &incoming).await.map_err(|error| unknown(run, error))? {
        Ok(_) => Ok(Exit::Done),
        Err(decided) => Err(approvals::unknown(decided.call_id.as_str())),
    }
}

/// A call of the tenant that waits for this, and not for too long.
async fn waiting(
    store: &dyn Store,
    key: Key,
    (tenant, suspension): (&Option<Arc<str>>, Suspension),
    id: &str,
) -> Result<PendingCall, Failure> {
    let fits = |call: &PendingCall| {
        call.suspension == suspension && call.tenant == *tenant && !call.is_expired(SystemClock.now())
    };
    store.pending(&key).await?.filter(fits).ok_or_else(|| approvals::unknown(id))
}

/// A run of another tenant and one that never was read alike.
fn unknown(run: &str, error: QueueError) -> Failure {
    match error {
        QueueError::Unknown => {
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
    /// A worker has it.
    held: bool,
    /// How much was posted to it and not taken yet.
    posts: u32,
    due: Option<String>,
    waiting: Vec<&'a WaitingCall>,
    text: String,
    summary: &'a RunSummary,
    /// The budgets that the policy sets, with what was used of them.
    accounts: Vec<Account>,
}

async fn show(cli: &Cli<'_>, run: &str) -> Result<Exit, Failure> {
    let (store, tenant) = (cli.existing_store().await?.ok_or_else(missing)?, cli.party().tenant);
    let found = RunQueue::new(Arc::clone(&store)).find(run, tenant.as_deref()).await;
    let (stored, conversation) = found.map_err(|error| unknown(run, error))?;
    let history = conversation.history();
    let last = history.iter().rev().find(|message| matches!(message, Message::Assistant(_)));
    let (snapshot, party) = (conversation.run(), (stored.tenant.as_ref(), stored.principal.as_ref()));
    let shown = Shown {
        run,
        state: if stored.state.is_empty() { "new" } else { &stored.state },
        held: stored.is_held(SystemClock.now()),
        posts: stored.posts,
        due: stored.due.map(|due| format!("{due:.0}")),
        waiting: conversation.waiting().collect(),
        text: last.map(Message::text).unwrap_or_default(),
        summary: snapshot.summary(),
        accounts: accounts::of_run(&*store, &cli.policy()?, snapshot.spent(), party).await?,
    };
    if cli.settings.json {
        terminal::line(&json(&shown)?);
    } else {
        print(&shown);
    }
    Ok(exit(&stored, &conversation))
}

fn print(shown: &Shown<'_>) {
    let has = if shown.held { ", and a worker has it" } else { "" };
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
    shown.accounts.iter().for_each(|account| terminal::line(&format!("  budget of the {}", account.told())));
}

/// What the conversation waits for is the exit code.
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

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Store(error) => error.into(),
            error => Self::usage(error.to_string()).code(error.code()),
        }
    }
}
