//! `worker`: continues the conversations of a store, puts them in, posts to them and shows them.

use std::sync::Arc;

use serde::Serialize;
use tool_runtime::agent::{
    Agent, ClientAnswer, Incoming, QueueError, RunQueue, SavedConversation, WaitingCall, Worker,
};
use tool_runtime::call::{CallId, RunSummary, Suspension};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{Document, Key, PendingCall, Store, StoreError, StoredRun};
use tool_runtime::wire::Message;

use crate::accounts::Account;
use crate::args::{self, Who, WorkerAction};
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{approvals, chat, input, terminal};

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
    let Some(opened) = super::store::opened(cli, command.wait_for_store, told_to_end()).await else {
        return Ok(Exit::Done);
    };
    let gate = opened?;
    let runner = gate.runner.clone();
    let worker = Worker::new(agent, runner).name(cli.app.name).concurrency(command.concurrency).lease(command.lease);
    let worker = worker.patience(command.wait_for_store).prepare(move |_, options| gate.connected(options));
    terminal::note("the worker runs; Ctrl-C or SIGTERM ends it when its steps are done");
    worker.run(told_to_end()).await.map_err(|error| match error {
        StoreError::ReadOnly(_) => {
            let text =
                "the database cannot be written to, so no conversation can be continued: name the primary server";
            Failure::failed(text).code(error.code())
        }
        error => error.into(),
    })?;
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
    let queued = RunQueue::new(&gate.runner).enqueue(&conversation.save().await?).await;
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
    cli.existing_store().await?.ok_or_else(missing)?;
    let (gate, tenant) = (cli.open().await?, cli.party().tenant);
    let (store, queue) = (Arc::clone(&gate.store), RunQueue::new(&gate.runner));
    let (found, _) = queue.find(run, tenant.as_deref()).await.map_err(|error| unknown(run, error))?;
    // What somebody else made wait under the same ids is none of this run's.
    let key = |call: &str| Key::waiting(run, tenant.as_deref(), found.principal.as_deref(), &CallId::new(call));
    let mut named = std::collections::HashSet::new();
    let calls = decisions.iter().map(|(call, _)| call).chain(answers.iter().step_by(2));
    if let Some(twice) = calls.into_iter().find(|call| !named.insert(call.as_str())) {
        let id = terminal::safe(twice);
        return Err(Failure::usage(format!(
            "the call `{id}` is decided twice; write one of --approve, --deny, --answer"
        )));
    }
    for (call, decision) in decisions {
        let pending = waiting(&*store, key(&call), (&tenant, Suspension::Approval), &call).await?;
        let decider = cli.named_decider(&pending, who)?;
        approvals::check(cli, &pending, &decision)?;
        incoming = incoming.decide(&pending.question(), decision, &decider);
    }
    for pair in answers.chunks_exact(2) {
        let output = input::json_value(&pair[1])?;
        waiting(&*store, key(&pair[0]), (&tenant, Suspension::Client), &pair[0]).await?;
        incoming = incoming.answer(ClientAnswer::value(pair[0].as_str(), output));
    }
    queue.post(run, tenant.as_deref(), &incoming).await.map_err(|error| match error {
        QueueError::Unknown => unknown(run, error),
        QueueError::Refused(ResumeError::NotWaiting(call)) => approvals::unknown(call.as_str()),
        error => approvals::refused(run, error),
    })?;
    Ok(Exit::Done)
}

/// A call of the tenant that waits for this, and not for too long.
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

/// The document of a run.
async fn stored(store: &dyn Store, run: &str) -> Result<Option<StoredRun>, StoreError> {
    Ok(match store.read(&[Key::run(run)]).await?.pop().flatten() {
        Some(Document::Run(run)) => Some(*run),
        _ => None,
    })
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
    /// Its records end before an anchor from before the restore: no worker takes it until it is released.
    held_back: bool,
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
    let stored = stored(&*store, run).await?.filter(|stored| stored.tenant == tenant && !stored.is_served());
    let stored =
        stored.filter(|stored| !stored.document.is_empty()).ok_or_else(|| unknown(run, QueueError::Unknown))?;
    let conversation: SavedConversation =
        serde_json::from_str(&stored.document).map_err(|error| StoreError::Corrupt(error.into()))?;
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
        (_, true) => ", and a worker has it",
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
