//! `resumed FOLDER`: conversations that pause and continue in a second response: an approval, a refusal, a client's
//! result. For each conversation, it writes the first response for the AI SDK (`NAME-first.sse`), reads the body that
//! the client would post, and writes the second response (`NAME-second.sse`).

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tests::grace;
use tests::world::{Cursor, EventLog};
use tool_runtime::agent::{Agent, Conversation, Input, TurnOutcome};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
use tool_runtime::{Event, RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

type Failed = Box<dyn std::error::Error>;

/// Sends a message.
#[tool(name = "resumed__send", effect = external_side_effect, redact = ["$"])]
fn send(
    /// To whom.
    to: String,
) -> Result<String, ToolError> {
    Ok(format!("sent to {to}"))
}

const POLICY: &str = r#"
allowed_tools = ["resumed__send", "rig__cursor"]
require_approval_for_effects = ["external_side_effect"]
"#;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the exit code alone reports the failure.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: resumed FOLDER")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let decided = |approved: bool| {
        // `null` is replaced by the id of the question, which does not exist yet.
        let approval = json!({ "id": null, "approved": approved, "reason": "Because." });
        part("a", "resumed__send", "approval-responded", "approval", &approval)
    };
    for (name, posted) in [
        ("approved", vec![decided(true)]),
        ("denied", vec![decided(false)]),
        ("client", vec![part("b", "rig__cursor", "output-available", "output", &json!(7))]),
    ] {
        runtime.block_on(pair(&folder, name, &posted))?;
    }
    Ok(())
}

fn part(id: &str, tool: &str, state: &str, key: &str, value: &Value) -> Value {
    json!({ "type": format!("tool-{tool}"), "toolCallId": id, "state": state, "input": {}, key: value })
}

async fn pair(folder: &Path, name: &str, posted: &[Value]) -> Result<(), Failed> {
    let catalog = ToolCatalog::builder().tool::<send>().tool::<Cursor>().build()?;
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(POLICY)?).approvals(true).build()?;
    let first = match name {
        "client" => ScriptedTurn::call("b", "rig__cursor", r#"{"file":"a.rs"}"#),
        _ => ScriptedTurn::call("a", "resumed__send", r#"{"to":"ada"}"#),
    };
    let agent = Agent::new(Arc::new(ScriptedModel::new([first, ScriptedTurn::text("That is all.")])));
    let heard = EventLog::default();
    let mut conversation = agent.converse(runner.run(RunOptions::new().events(heard.sink())));
    if !matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }) {
        return Err(format!("{name}: nothing waits").into());
    }
    let mut encoder = UiEncoder::new(Protocol::UiMessageStream);
    let start = encoder.push(&UiEvent::MessageStart { id: "msg_1".to_owned() });
    write(&folder.join(format!("{name}-first.sse")), start, encoder, &heard.take())?;

    let mut posted = posted.to_vec();
    if posted[0]["approval"].is_object() {
        posted[0]["approval"]["id"] = json!(tests::question(&conversation, "a"));
    }
    let body = json!({ "id": "chat_1", "trigger": "submit-message", "messages": [
        { "id": "u1", "role": "user", "parts": [{ "type": "text", "text": "Go." }] },
        { "id": "msg_1", "role": "assistant", "parts": posted },
    ] });
    let encoder = UiEncoder::resuming(Protocol::UiMessageStream, "msg_1", waiting(&conversation));
    let request = conversation.chat_reader().read(body.to_string().as_bytes())?;
    let ended = conversation.receive(Input::posted(request, &grace())).await?;
    if !matches!(ended, TurnOutcome::Answered { .. }) {
        return Err(format!("{name}: {ended:?}").into());
    }
    write(&folder.join(format!("{name}-second.sse")), Vec::new(), encoder, &heard.take())
}

fn waiting(conversation: &Conversation) -> Vec<String> {
    conversation.waiting().map(|call| call.id.to_string()).collect()
}

fn write(path: &Path, mut bytes: Vec<u8>, mut encoder: UiEncoder, events: &[Event]) -> Result<(), Failed> {
    events.iter().for_each(|event| bytes.extend(encoder.push_event(event)));
    bytes.extend(encoder.finish());
    Ok(std::fs::write(path, bytes)?)
}
