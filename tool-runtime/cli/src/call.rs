//! `call`: runs one call through the gate.

use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tool_runtime::store::AuditRecord;
use tool_runtime::{Event, Outcome, ToolCall, ToolExecResult};

use crate::attend::cancellable;
use crate::exit::{Exit, Failure};
use crate::saved::{ConversationFiles, Document};
use crate::session::{Cli, Session, Sink};
use crate::terminal::json;
use crate::text::{Why, nearest};
use crate::values::View;
use crate::{input, terminal};

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The name of the tool
    pub(crate) name: String,
    /// The arguments as JSON, `-` for standard input, `@FILE` for a file; {} by default
    pub(crate) arguments: Option<String>,
    /// The arguments as an option, as `policy explain` takes them
    #[arg(long = "arguments", value_name = "JSON", conflicts_with = "arguments", hide = true)]
    pub(crate) named_arguments: Option<String>,
    /// The view of the result to print
    #[arg(long, value_enum)]
    pub(crate) view: Option<View>,
    /// Print the events of the call as JSON lines on stderr
    #[arg(long)]
    pub(crate) events: bool,
    /// Print the text of the tool's own error on stderr; it can contain private values
    #[arg(long)]
    pub(crate) detail: bool,
    /// Text to treat as the user's: ids in it count as evidence
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_text: Option<String>,
    /// The client's answer, for a tool that a client executes: JSON, `-` or `@FILE`
    #[arg(long, value_name = "JSON")]
    pub(crate) answer: Option<String>,
}

/// Writes an event as a JSON line to stderr.
fn to_stderr(event: &Event) {
    if let Ok(line) = serde_json::to_string(event) {
        terminal::message(&terminal::safe_json(&line));
    }
}

pub(super) async fn call(cli: &Cli<'_>, call: Call) -> Result<Exit, Failure> {
    let arguments = call.arguments.or(call.named_arguments);
    let arguments = input::json_text(arguments.as_deref().unwrap_or_default())?;
    let answer = call.answer.as_deref().map(input::json_value).transpose()?;
    let sink = call.events.then(|| -> Sink { Arc::new(|event| to_stderr(&event)) });
    let session = cli.start(call.user_text.as_deref(), sink).await?;
    let exec = session.run.exec(ToolCall::text("", call.name.as_str(), arguments));
    let mut result = Box::pin(cancellable(&session.run, exec)).await;
    if let (Outcome::ClientRequired, Some(answer)) = (result.outcome(), &answer) {
        let answered = session.run.client_result(result.call_id().as_str(), answer).await;
        result = answered.map_err(|error| Failure::failed(error.to_string()).code(error.code()))?;
    }
    print(cli, &session, &result, call.view).await?;
    explain(cli, &session, &call.name, result.outcome());
    if let Some(text) = result.detail().filter(|_| call.detail) {
        terminal::message(&format!("the tool's error: {}", terminal::safe(text)));
    }
    // A call still waits after a wrong client answer, so that a person can correct it.
    let waits =
        matches!(result.outcome(), Outcome::ApprovalRequired | Outcome::ClientRequired | Outcome::ApprovalMismatch);
    if waits {
        keep(cli, &session, &call.name, &result).await?;
    }
    Ok(Exit::of(result.outcome()))
}

/// The result as `--json` prints it: the fields for a UI, and the text that the model reads.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    result: &'a ToolExecResult,
    model: String,
}

/// The record of a call that waits.
#[derive(Serialize)]
struct Unsealed {
    record: AuditRecord,
}

async fn print(cli: &Cli<'_>, session: &Session, result: &ToolExecResult, view: Option<View>) -> Result<(), Failure> {
    match view {
        None if cli.settings.json => terminal::line(&json(&Whole { result, model: result.to_model() })?),
        Some(View::Model) if cli.settings.json => terminal::line(&json(&result.to_model())?),
        None | Some(View::Model) => terminal::line(&terminal::safe_lines(&result.to_model())),
        Some(View::Ui) => terminal::line(&json(result)?),
        Some(View::Audit) => {
            for sealed in &session.sealed().await? {
                terminal::line(&json(sealed)?);
            }
            // The record of a waiting call is not in the chain yet, so it has no seal.
            for record in session.open_records().await? {
                terminal::line(&json(&Unsealed { record: record.into() })?);
            }
        }
    }
    Ok(())
}

/// Saves a call that waits, so that a later command can decide or answer it, and prints this command.
async fn keep(cli: &Cli<'_>, session: &Session, name: &str, result: &ToolExecResult) -> Result<(), Failure> {
    let files = ConversationFiles::of(cli);
    let mut kept = files.create(format!("call {name}"));
    kept.save(Document::Call(Box::new(session.run.snapshot().await?)))?;
    let (id, same) = (result.call_id().as_str(), cli.same_options());
    let shown = terminal::safe(id);
    terminal::note(&match result.outcome() {
        // `call` takes no decision except a client's answer, so the mismatch is a wrong answer.
        Outcome::ClientRequired | Outcome::ApprovalMismatch => {
            let command = cli.command("approvals answer", (id, " JSON"), &same);
            format!("the call {shown} waits for its client; answer it: {command}")
        }
        _ => {
            let command = cli.command("approvals show", (id, ""), &same);
            format!("the call {shown} waits for a person; review and decide it: {command}")
        }
    });
    Ok(())
}

/// Prints why the tool cannot run or a suggestion for a misspelt name, and the command that explains a refusal. Only
/// the person at the keyboard reads this text; a model is never told that a hidden tool exists.
fn explain(cli: &Cli<'_>, session: &Session, name: &str, outcome: Outcome) {
    // Programs read the code of the outcome instead.
    if cli.settings.json {
        return;
    }
    let (runner, run, shown) = (&session.gate.runner, &session.run, terminal::safe(name));
    let is_allowed = runner.policy().mentions(name);
    if let Some(why) = runner.catalog().unready(runner.policy(), name).filter(|_| is_allowed) {
        terminal::note(&format!("`{shown}` is allowed but cannot run: {}", terminal::safe(&why.to_string())));
    } else if run.catalog().get(name).is_none() {
        let nearest = nearest(name, run.catalog().specs().map(|spec| spec.name.as_str()));
        let meant = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        let meant = if runner.catalog().get(name).is_some() { String::new() } else { meant };
        terminal::note(&format!("no tool `{shown}` is visible under this policy{meant}"));
    }
    if let Some(command) = Why::of(cli.app.name, cli.same_party(), runner).command(outcome, name) {
        terminal::note(&format!("why: {command}"));
    }
}
