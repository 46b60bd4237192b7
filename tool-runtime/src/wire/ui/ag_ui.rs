//! `ag-ui`: server-sent events of the AG-UI protocol, version 1.0, for `@ag-ui/client`.
//!
//! A response is one run. A question about a call ends the run with an interrupt, which the next request resumes. If
//! there is no question and the run was not cancelled, its end lists the calls that the client has to execute.

use crate::wire::Usage;
use crate::wire::ui::frame::{Frame, Json, Open, Part, Question, RunIds, Words, json, named};

/// The name of the protocol.
pub(super) const NAME: &str = "ag-ui";

/// The protocol version that this module writes.
const VERSION: &str = "1.0";

/// The name of every step; one name is enough because steps do not nest.
const STEP: (&str, Json<'_>) = ("stepName", Json::Text("turn"));

/// The largest integer that JavaScript clients read exactly.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The JSON Schema of the answer to a question.
const ANSWER: &str = r#"{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}"#;

pub(super) fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let mut event = |name: &str, members: &[(&str, Json<'_>)]| named(out, name, members);
    match *frame {
        Frame::MessageStart { run, .. } => {
            let [thread, run] = ids(run);
            event("RUN_STARTED", &[thread, run, ("protocolVersion", Json::Text(VERSION))]);
        }
        Frame::StepStart { .. } => event("STEP_STARTED", &[STEP]),
        Frame::WordsStart(Words::Text, part) => {
            event("TEXT_MESSAGE_START", &[message(part), ("role", Json::Text("assistant"))]);
        }
        Frame::WordsStart(Words::Reasoning, part) => {
            event("REASONING_START", &[message(part)]);
            event("REASONING_MESSAGE_START", &[message(part), ("role", Json::Text("reasoning"))]);
        }
        Frame::Words { words, part, text } => {
            let name = if words == Words::Text { "TEXT_MESSAGE_CONTENT" } else { "REASONING_MESSAGE_CONTENT" };
            event(name, &[message(part), ("delta", Json::Text(text))]);
        }
        Frame::WordsEnd(Words::Text, part) => event("TEXT_MESSAGE_END", &[message(part)]),
        Frame::WordsEnd(Words::Reasoning, part) => {
            event("REASONING_MESSAGE_END", &[message(part)]);
            event("REASONING_END", &[message(part)]);
        }
        Frame::CallStart { call, carrier, .. } => {
            let name = ("toolCallName", Json::Text(&call.name));
            event("TOOL_CALL_START", &[id(call), name, ("parentMessageId", Json::Optional(carrier))]);
        }
        Frame::Arguments { call, text } => event("TOOL_CALL_ARGS", &[id(call), ("delta", Json::Text(text))]),
        // AG-UI cannot replace the arguments of a call, so a custom event carries the new arguments.
        Frame::ArgumentsEnd { call, input, again: true, .. } => {
            let value = json(&[id(call), ("input", Json::Raw(input))]);
            event("CUSTOM", &custom("tool-input", &value));
        }
        Frame::ArgumentsEnd { call, input, streamed, .. } => {
            if !streamed {
                event("TOOL_CALL_ARGS", &[id(call), ("delta", Json::Text(input))]);
            }
            event("TOOL_CALL_END", &[id(call)]);
        }
        Frame::ArgumentsError { call, streamed, again: false, .. } => {
            if !streamed {
                event("TOOL_CALL_ARGS", &[id(call), ("delta", Json::Text("{}"))]);
            }
            event("TOOL_CALL_END", &[id(call)]);
        }
        Frame::Result { call, result, .. } => {
            let message = format!("result-{}", call.id);
            event(
                "TOOL_CALL_RESULT",
                &[("messageId", Json::Text(&message)), id(call), ("content", Json::Text(result))],
            );
        }
        Frame::Failure { call, result, .. } | Frame::Denied { call, result } => {
            let message = format!("result-{}", call.id);
            let failed = ("metadata", Json::Raw(r#"{"isError":true}"#));
            let content = ("content", Json::Text(result));
            event("TOOL_CALL_RESULT", &[("messageId", Json::Text(&message)), id(call), content, failed]);
        }
        Frame::Source { id, url, title, .. } => {
            let members = [("id", Json::Text(id)), ("url", Json::Optional(url)), ("title", Json::Optional(title))];
            event("CUSTOM", &custom("source", &json(&members)));
        }
        Frame::File { media_type, url, .. } => {
            let value = json(&[("mimeType", Json::Text(media_type)), ("url", Json::Text(url))]);
            event("CUSTOM", &custom("file", &value));
        }
        Frame::Data { name, id, value, .. } => {
            let value = json(&[("name", Json::Text(name)), ("id", Json::Optional(id)), ("data", Json::Raw(value))]);
            event("CUSTOM", &custom("data", &value));
        }
        Frame::Status { text } => event("CUSTOM", &custom("status", &json(&[("text", Json::Text(text))]))),
        Frame::StepFinish { .. } => event("STEP_FINISHED", &[STEP]),
        Frame::Finish { code, usage, run, open, .. } => {
            let [thread, run] = ids(run);
            let (usage, outcome) = (tokens(usage), outcome(code, open));
            let metadata = json(&[("finishReason", Json::Text(code))]);
            let usage = ("usage", usage.as_deref().map_or(Json::OptionalRaw(None), Json::Raw));
            let metadata = ("metadata", Json::Raw(&metadata));
            event("RUN_FINISHED", &[thread, run, ("outcome", Json::Raw(&outcome)), usage, metadata]);
        }
        Frame::Error { code, message } => {
            event("RUN_ERROR", &[("message", Json::Text(message)), ("code", Json::Optional(code))]);
        }
        // `RUN_FINISHED` contains the questions and the calls that stay open. The other frames have no event in AG-UI.
        Frame::ApprovalRequest { .. }
        | Frame::ApprovalResponse { .. }
        | Frame::ArgumentsError { again: true, .. }
        | Frame::Left(_)
        | Frame::End => {}
    }
}

fn ids(run: &RunIds) -> [(&'static str, Json<'_>); 2] {
    [("threadId", Json::Text(&run.thread)), ("runId", Json::Text(&run.run))]
}

fn message(part: &Part) -> (&'static str, Json<'_>) {
    ("messageId", Json::Text(&part.id))
}

fn id(call: &Part) -> (&'static str, Json<'_>) {
    ("toolCallId", Json::Text(&call.id))
}

fn custom<'a>(name: &'a str, value: &'a str) -> [(&'static str, Json<'a>); 2] {
    [("name", Json::Text(name)), ("value", Json::Raw(value))]
}

/// The token counts as JSON; `None` if nothing was counted.
fn tokens(usage: Usage) -> Option<String> {
    let (input, output) = (usage.input_tokens.min(MAX_INTEGER), usage.output_tokens.min(MAX_INTEGER));
    (input > 0 || output > 0).then(|| format!(r#"[{{"inputTokens":{input},"outputTokens":{output}}}]"#))
}

fn outcome(code: &str, open: &[Open<'_>]) -> String {
    let interrupts: Vec<_> = open.iter().filter_map(|open| Some(interrupt(open.call, open.question?))).collect();
    if !interrupts.is_empty() {
        return json(&[("type", Json::Text("interrupt")), ("interrupts", Json::List(&interrupts))]);
    }
    if code == "cancelled" {
        return json(&[("type", Json::Text("cancelled"))]);
    }
    let pending: Vec<_> = open.iter().map(|open| quoted(&open.call.id)).collect();
    let pending = if pending.is_empty() { Json::Optional(None) } else { Json::List(&pending) };
    json(&[("type", Json::Text("success")), ("pendingToolCallIds", pending)])
}

fn interrupt(call: &Part, question: Question<'_>) -> String {
    let asked = format!("Allow the call of {}?", if call.name.is_empty() { "this tool" } else { &call.name });
    json(&[
        ("id", Json::Text(question.id)),
        ("reason", Json::Text("tool_call")),
        ("message", Json::Text(question.reason.unwrap_or(&asked))),
        id(call),
        ("responseSchema", Json::Raw(ANSWER)),
    ])
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
