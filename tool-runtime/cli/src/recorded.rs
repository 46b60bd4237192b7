//! `chat --transcript`: decodes a recorded response, runs its calls through the gate, and prints every step.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use tool_runtime::call::JsonText;
use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::{Decoded, DecodedCall, Format, Message, WireError};
use tool_runtime::{ToolExecResult, ToolInvocationRecord};

use crate::exit::{Exit, Failure};
use crate::http_record::HttpRecord;
use crate::session::{Cli, Session};
use crate::values::name;
use crate::{http_record, input, terminal};

/// The effects of one recorded turn, as `--json` prints them. The type is serialised directly, because a `Value` cannot
/// hold all arguments that a model may write, such as deeply nested ones and half of a surrogate pair.
#[derive(Serialize)]
struct Turn {
    decoded: Decoded,
    #[serde(skip)]
    results: Vec<ToolExecResult>,
    records: Vec<ToolInvocationRecord>,
    changes: Vec<String>,
    messages: Value,
    /// The same messages with sensitive arguments masked.
    #[serde(skip)]
    shown: Value,
    #[serde(serialize_with = "code")]
    exit: Exit,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn code<S: serde::Serializer>(exit: &Exit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(exit.code())
}

pub(super) async fn chat(cli: &Cli<'_>, format: Format, transcript: &Path, prompt: &str) -> Result<Exit, Failure> {
    let decoded = read_response(format, transcript)?;
    let session = cli.start(Some(prompt), None).await?;
    let turn = take(cli, &session, format, decoded).await?;
    if cli.settings.json {
        terminal::line(&terminal::json(&turn)?);
    } else {
        print(&turn);
    }
    Ok(turn.exit)
}

/// Reads and decodes a recorded response of a provider: an HTTP response as received, or a bare body; `-` is standard
/// input.
///
/// # Errors
/// The file cannot be read, or contains no response in this format.
pub fn read_response(format: Format, path: &Path) -> Result<Decoded, Failure> {
    let bytes = input::file(path)?;
    let recorded = http_record::parse(&bytes).map_err(|error| {
        Failure::usage(format!("{} is not a recorded response: {error}", path.display())).code("unreadable_input")
    })?;
    let mut decoder = format.decoder();
    decoder.push_with(&recorded.body, |_| {});
    let decoded = decoder.finish();
    if says_nothing(&recorded, &decoded) {
        let (path, format) = (path.display(), name(format));
        let message = format!("{path} holds no response in the format {format}; is it the right file?");
        return Err(Failure::usage(message).code("unreadable_input"));
    }
    Ok(decoded)
}

/// Whether the file contains no response in this format. A recorded error and an incomplete turn are responses.
fn says_nothing(recorded: &HttpRecord<'_>, decoded: &Decoded) -> bool {
    if !decoded.text.is_empty() || !decoded.calls.is_empty() || !recorded.complete {
        return false;
    }
    if recorded.status.is_some_and(|status| status >= 400) {
        return false;
    }
    match decoded.error.as_ref().map(WireError::code) {
        // Valid JSON that breaks the rules of this format is probably a response in another format.
        Some("protocol_violation") => serde_json::from_slice::<serde::de::IgnoredAny>(&recorded.body).is_ok(),
        Some("malformed_frame" | "truncated_stream") => decoded.response_id.is_none(),
        _ => false,
    }
}

async fn take(cli: &Cli<'_>, session: &Session, format: Format, decoded: Decoded) -> Result<Turn, Failure> {
    let inspect = || match &cli.app.inspect {
        Some(inspect) => inspect(&cli.settings.data).map_err(|error| Failure::failed(error.to_string())),
        None => Ok(Vec::new()),
    };
    let before = inspect()?;
    session.run.begin_turn();
    let mut results = Vec::new();
    for call in &decoded.calls {
        results.push(session.run.exec(call.call.clone()).await);
    }
    let changes = difference(&before, &inspect()?);
    let records = session.records().await?;
    let messages = |parts: Vec<Part>| {
        let mut history = vec![Message::Assistant(parts)];
        history.extend(results.iter().map(|result| Message::Result(result.into())));
        // The only array is the list of messages, whose name differs between formats.
        let fields = format.encode_messages(&history, None).body.into_values();
        fields.filter_map(|field| serde_json::from_str(field.get()).ok()).find(Value::is_array).unwrap_or_default()
    };
    // Provider state, such as signatures, is not shown to people.
    let mut calls = decoded.calls.iter();
    let shown = decoded.parts().into_iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(Part::text(text)),
        Part::Refusal(text) => Some(Part::Refusal(text)),
        Part::Call(_) => calls.next().map(|call| Part::Call(masked(call, &records))),
        _ => None,
    });
    let shown = messages(shown.collect());
    let messages = messages(decoded.parts());
    let broken = !decoded.ended_well();
    let gravest = results.iter().map(|result| Exit::of(result.outcome())).max().unwrap_or(Exit::Done);
    let exit = if broken { gravest.max(Exit::Failed) } else { gravest };
    Ok(Turn { decoded, results, records, changes, messages, shown, exit })
}

/// Returns the call as a message of the history, with the masked arguments of its record.
fn masked(call: &DecodedCall, records: &[ToolInvocationRecord]) -> CallMessage {
    let record = records.iter().find(|record| record.tool_call_id == call.call.id);
    let arguments = record.and_then(|record| record.shown_arguments()).map_or("", JsonText::get);
    CallMessage::new(call.call.id.clone(), call.call.name.clone(), arguments)
}

/// Returns the lines that are only in `before` (`-`) or only in `after` (`+`).
fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

fn print(turn: &Turn) {
    let decoded = &turn.decoded;
    heading("The model's response, decoded");
    let ended = decoded.provider_finish.as_deref().unwrap_or("nothing");
    terminal::line(&format!("finish: {} (the provider's word: {})", word(&decoded.finish), terminal::safe(ended)));
    if let Some(error) = &decoded.error {
        let said = error.message.as_deref().map_or_else(|| error.to_string(), |said| format!("{error}: {said}"));
        terminal::line(&format!("error:  {}", terminal::safe(&said)));
    }
    if !decoded.text.is_empty() {
        terminal::line(&format!("text:   {}", terminal::safe(&decoded.text)));
    }
    for call in &decoded.calls {
        terminal::line(&format!(
            "call:   {} {} [{}]",
            terminal::safe(call.call.id.as_str()),
            terminal::safe(&call.call.name),
            call.status()
        ));
    }
    heading("Through the gate");
    if turn.records.is_empty() {
        terminal::line("no call, so nothing ran");
    }
    for result in &turn.results {
        if let Some(record) = turn.records.iter().find(|record| record.tool_call_id == *result.call_id()) {
            print_call(record, result);
        }
    }
    heading("Changes");
    if turn.changes.is_empty() {
        terminal::line("nothing");
    }
    turn.changes.iter().for_each(|change| terminal::line(&terminal::safe(change)));
    heading("The messages that would go back to the model");
    if let Some(messages) = turn.shown.as_array() {
        messages.iter().for_each(|message| terminal::line(&terminal::safe_json(&message.to_string())));
    }
}

fn print_call(record: &ToolInvocationRecord, result: &ToolExecResult) {
    terminal::line(&format!("{} -> {}", terminal::safe(&record.name), terminal::bold(record.outcome.code())));
    terminal::line(&format!("  arguments  {}", arguments(record)));
    for change in &record.changes {
        terminal::line(&format!("  changed    {}", terminal::safe(&change.to_string())));
    }
    if let Some(decision) = &record.decision {
        terminal::line(&format!("  policy     {} ({})", decision.verdict, terminal::safe(&decision.rule)));
    }
    terminal::line(&format!("  executed   {}", if record.executed { "yes" } else { "no" }));
    if let Some(value) = result.value() {
        terminal::line(&format!("  result     {}", terminal::safe_json(value.get())));
    }
    if let Some(error) = result.error() {
        terminal::line(&format!("  message    {}", terminal::safe(&error.safe_message)));
        for violation in &error.errors {
            let hint = violation.hint.as_deref().unwrap_or_default();
            terminal::line(&format!(
                "  at {:9} {}: expected {}{}{}",
                if violation.pointer.is_empty() { "/" } else { &violation.pointer },
                violation.keyword,
                terminal::safe(&violation.expected),
                if hint.is_empty() { "" } else { "; " },
                terminal::safe(hint)
            ));
        }
    }
}

fn arguments(record: &ToolInvocationRecord) -> String {
    match (record.shown_arguments(), record.unread_arguments()) {
        (Some(arguments), _) => terminal::safe_json(arguments.get()),
        (None, Some((length, digest))) => format!("not shown ({length} bytes, digest {digest})"),
        (None, None) => "not shown".to_owned(),
    }
}

fn heading(text: &str) {
    terminal::line(&format!("\n{}", terminal::bold(&format!("== {text}"))));
}

/// Returns the name of a state in JSON.
fn word<T: Serialize>(state: &T) -> String {
    serde_json::to_value(state).ok().and_then(|word| word.as_str().map(ToOwned::to_owned)).unwrap_or_default()
}
