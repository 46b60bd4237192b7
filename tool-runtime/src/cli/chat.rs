//! `chat`: a conversation with a model behind an endpoint, every call shown on its way through the gate.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use serde_json::json;

use crate::agent::http::HttpModel;
use crate::agent::{Agent, Conversation, Ended, StopReason};
use crate::call::{Event, EventSink};
use crate::cli::app::App;
use crate::cli::args::{Chat, Global};
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::{self, Session};
use crate::cli::{recorded, terminal};
use crate::runner::ApprovalDecision;
use crate::store::{Store as _, Suspension};

pub(super) async fn chat(app: &App, global: &Global, chat: Chat) -> Result<Exit, Failure> {
    match (&chat.transcript, &chat.model_url) {
        (Some(transcript), _) => recorded::chat(app, global, chat.format, transcript, &chat.prompt.join("\n")).await,
        (None, Some(url)) => live(app, global, &chat, url).await,
        (None, None) => Err(Failure::usage("give `--transcript` or `--model-url`")),
    }
}

async fn live(app: &App, global: &Global, chat: &Chat, url: &str) -> Result<Exit, Failure> {
    let agent = Agent::new(Arc::new(model(chat, url)?)).parallel(chat.parallel);
    let agent = match &chat.instructions {
        Some(text) => agent.instructions(text.as_str()),
        None => agent,
    };
    let shown: Arc<dyn EventSink> = if global.json { Arc::new(JsonLines) } else { Arc::new(Screen) };
    let session = session::start(app, global, None, Some(shown))?;
    let mut conversation = agent.converse(session.run.clone());
    cancel_on_interrupt(&session);
    let mut gravest = Exit::Done;
    for prompt in &chat.prompt {
        let mut ended = conversation.send(prompt.as_str()).await;
        while let Some(next) = decide(&session, &mut conversation, &ended).await? {
            ended = next;
        }
        gravest = gravest.max(exit(&ended));
        if let Ended::Stopped { reason, .. } = &ended {
            report(reason);
        }
        if !matches!(ended, Ended::Answered { .. }) {
            break;
        }
    }
    let summary = conversation.run().summary();
    if global.json {
        let document = json!({"summary": summary, "turns": conversation.turns()});
        terminal::line(&super::call::json(&document)?);
    }
    Ok(summary.calls.keys().map(|outcome| Exit::of(*outcome)).fold(gravest, Exit::max))
}

fn model(chat: &Chat, url: &str) -> Result<HttpModel, Failure> {
    let name = chat.model.as_deref().unwrap_or_default();
    let mut builder = HttpModel::builder(chat.format, url, name)
        .stream(!chat.no_stream)
        .strict(chat.strict)
        .max_output_tokens(chat.max_output_tokens);
    if let Some(variable) = &chat.key_env {
        let key = std::env::var(variable)
            .map_err(|_| Failure::usage(format!("the environment variable `{variable}` holds no key")))?;
        builder = builder.key(key);
    }
    builder.build().map_err(|error| Failure::usage(error.detail()))
}

/// The first interrupt cancels the run, so that everything that began is recorded; the second one ends the program.
fn cancel_on_interrupt(session: &Session) {
    let run = session.run.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            terminal::message("\ninterrupted: the run is cancelled (once more ends the program)");
            run.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
}

/// Asks the person at the keyboard about the first call that waits for one. Nothing without a keyboard.
async fn decide(session: &Session, conversation: &mut Conversation, ended: &Ended) -> Result<Option<Ended>, Failure> {
    let Ended::Waiting { calls } = ended else { return Ok(None) };
    let Some(call) = calls.iter().find(|call| call.suspension == Suspension::Approval) else { return Ok(None) };
    if !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let pending = session.store.pending(session.run.id(), &call.id).await;
    let Some(pending) = pending.map_err(|error| Failure::failed(error.to_string()))? else { return Ok(None) };
    let arguments = terminal::safe_json(pending.shown_arguments.get());
    let question = format!("allow {} {arguments}? [y/N] ", terminal::safe(&call.name));
    let answer = tokio::task::spawn_blocking(move || ask(&question)).await.unwrap_or_default();
    let decision = match answer.trim() {
        "y" | "Y" | "yes" => ApprovalDecision::Approve,
        _ => ApprovalDecision::Deny(None),
    };
    let id = call.id.clone();
    conversation.decide(&id, decision).await.map(Some).map_err(|error| Failure::failed(error.to_string()))
}

fn ask(question: &str) -> String {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(question.as_bytes()).and_then(|()| err.flush());
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    answer
}

fn exit(ended: &Ended) -> Exit {
    match ended {
        Ended::Answered { .. } => Exit::Done,
        Ended::Waiting { calls } if calls.iter().any(|call| call.suspension == Suspension::Approval) => {
            Exit::ApprovalRequired
        }
        Ended::Waiting { .. } => Exit::ClientRequired,
        Ended::Stopped { reason, .. } => match reason {
            StopReason::AskUser => Exit::Invalid,
            StopReason::Budget(_) => Exit::Denied,
            _ => Exit::Failed,
        },
    }
}

fn report(reason: &StopReason) {
    terminal::message(&format!("error: {reason}"));
    if let StopReason::Model(error) = reason {
        terminal::message(&format!("  {}", terminal::safe(error.detail())));
    }
    if let StopReason::Incomplete { error: Some(error), .. } = reason
        && let Some(said) = &error.message
    {
        terminal::message(&format!("  {}", terminal::safe(said)));
    }
}

/// Text on stdout, calls on stderr.
struct Screen;

impl EventSink for Screen {
    fn emit(&self, event: Event) {
        match event {
            Event::TextDelta { text } => terminal::part(&terminal::safe_lines(&text)),
            Event::ToolCallStart { name, .. } => terminal::message(&format!("-> {}", terminal::safe(&name))),
            Event::ToolCallSuspended { outcome, prepared, .. } => {
                let prepared = prepared.map(|payload| terminal::safe_json(payload.get())).unwrap_or_default();
                terminal::message(&format!("<- {} {prepared}", outcome.code()));
            }
            Event::ToolCallResult { name, arguments, outcome, value, error, .. } => {
                let json = |json: Option<Arc<serde_json::value::RawValue>>| {
                    json.map(|json| terminal::safe_json(json.get())).unwrap_or_default()
                };
                let said = error.map(|error| terminal::safe(&error.safe_message)).unwrap_or_default();
                let (name, code, arguments) = (terminal::safe(&name), outcome.code(), json(arguments));
                terminal::message(&format!("<- {name} {arguments} {code} {}{said}", json(value)));
            }
            Event::Done { .. } => terminal::part("\n"),
            _ => {}
        }
    }
}

/// Every event as a JSON line on stdout.
struct JsonLines;

impl EventSink for JsonLines {
    fn emit(&self, event: Event) {
        if let Ok(line) = serde_json::to_string(&event) {
            terminal::line(&terminal::safe_json(&line));
        }
    }
}
