//! `worker`: continues the conversations of a store, puts them in, posts to them and shows them.

use serde::Serialize;

use crate::agent::{Agent, ClientAnswer, Incoming, QueueError, RunQueue, SavedConversation, WaitingCall, Worker};
use crate::call::Suspension;
use crate::cli::args::{self, WorkerAction};
use crate::cli::call::json;
use crate::cli::chat;
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;
use crate::cli::{input, terminal};
use crate::runner::ApprovalDecision;
use crate::store::StoredRun;
use crate::wire::Message;

pub(super) async fn worker(cli: &Cli<'_>, command: args::Worker) -> Result<Exit, Failure> {
    if cli.settings.store.is_none() {
        return Err(Failure::usage("name the store that workers share: --store sqlite:FILE or postgres://.."));
    }
    match command.action {
        None => work(cli, command).await,
        Some(WorkerAction::Put { prompt, run }) => put(cli, &prompt, run).await,
        Some(WorkerAction::Post { run, prompt, approve, deny, answer }) => {
            let mut incoming = Incoming::new();
            if let Some(prompt) = prompt {
                incoming = incoming.text(text(&prompt)?);
            }
            let decider = cli.decider(None, None);
            let approved = approve.into_iter().map(|call| (call, ApprovalDecision::Approve));
            let decided = approved.chain(deny.into_iter().map(|call| (call, ApprovalDecision::Deny(None))));
            incoming = decided.fold(incoming, |incoming, (call, decision)| incoming.decide(call, decision, &decider));
            for pair in answer.chunks_exact(2) {
                incoming = incoming.answer(ClientAnswer::value(pair[0].as_str(), input::json_value(&pair[1])?));
            }
            let tenant = cli.party().tenant;
            queue(cli).await?.post(&run, tenant.as_deref(), &incoming).await?;
            Ok(Exit::Done)
        }
        Some(WorkerAction::Show { run }) => show(cli, &run).await,
    }
}

async fn queue(cli: &Cli<'_>) -> Result<RunQueue, Failure> {
    Ok(RunQueue::new(cli.store().await?))
}

fn text(prompt: &str) -> Result<String, Failure> {
    if prompt == "-" { input::text(input::stdin()?, "standard input") } else { Ok(prompt.to_owned()) }
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
async fn told_to_end() {
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
    if let Some(id) = run {
        options = options.run_id(id);
    }
    let agent: Agent = chat::offline();
    let mut conversation = agent.converse(gate.runner.run(options));
    let accepted = conversation.accept(Incoming::from(text(prompt)?)).await;
    accepted.map_err(|error| Failure::failed(error.to_string()).code(error.code()))?;
    queue(cli).await?.enqueue(&conversation.save().await?).await?;
    terminal::line(&terminal::safe(conversation.run().id()));
    Ok(Exit::Done)
}

/// A conversation as `--json` prints it.
#[derive(Serialize)]
struct Shown<'a> {
    run: &'a str,
    state: &'a str,
    due: Option<String>,
    waiting: Vec<&'a WaitingCall>,
    text: String,
}

async fn show(cli: &Cli<'_>, run: &str) -> Result<Exit, Failure> {
    let tenant = cli.party().tenant;
    let (stored, conversation) = queue(cli).await?.find(run, tenant.as_deref()).await?;
    let history = conversation.history();
    let last = history.iter().rev().find(|message| matches!(message, Message::Assistant(_)));
    let shown = Shown {
        run,
        state: &stored.state,
        due: stored.due.map(|due| format!("{due:.0}")),
        waiting: conversation.waiting().collect(),
        text: last.map(Message::text).unwrap_or_default(),
    };
    if cli.settings.json {
        terminal::line(&json(&shown)?);
    } else {
        terminal::line(&format!("{}  {}", terminal::safe(run), terminal::safe(shown.state)));
        for call in &shown.waiting {
            terminal::line(&format!("  {} waits: {}", terminal::safe(call.id.as_str()), terminal::safe(&call.name)));
        }
        if !shown.text.is_empty() {
            terminal::line(&terminal::safe_lines(&shown.text));
        }
    }
    Ok(exit(&stored, &conversation))
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
