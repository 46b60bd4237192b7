//! `ui-message-stream`: server-sent events for the `ai` package. It has frames for approvals.

use crate::wire::ui::frame::{DONE, Frame, Json, Part, Words, json, named};

/// The name of the protocol.
pub(super) const NAME: &str = "ui-message-stream";

pub(super) fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let mut event = |name: &str, members: &[(&str, Json<'_>)]| named(out, name, members);
    match *frame {
        Frame::MessageStart { id, .. } => event("start", &[("messageId", Json::Text(id))]),
        Frame::StepStart { .. } => event("start-step", &[]),
        Frame::WordsStart(words, part) => event(kind(words, ["text-start", "reasoning-start"]), &[id(part)]),
        Frame::Words { words, part, text } => {
            event(kind(words, ["text-delta", "reasoning-delta"]), &[id(part), ("delta", Json::Text(text))]);
        }
        Frame::WordsEnd(words, part) => event(kind(words, ["text-end", "reasoning-end"]), &[id(part)]),
        Frame::Source { id, url: Some(url), title, .. } => {
            let title = ("title", Json::Optional(title));
            event("source-url", &[("sourceId", Json::Text(id)), ("url", Json::Text(url)), title]);
        }
        Frame::Source { id, url: None, title, .. } => {
            // The protocol requires a title and a media type for such a source.
            let title = ("title", Json::Text(title.unwrap_or(id)));
            let media_type = ("mediaType", Json::Text("application/octet-stream"));
            event("source-document", &[("sourceId", Json::Text(id)), media_type, title]);
        }
        Frame::File { media_type, url, .. } => {
            event("file", &[("url", Json::Text(url)), ("mediaType", Json::Text(media_type))]);
        }
        Frame::Data { name, id, value, .. } => {
            event(&format!("data-{name}"), &[("id", Json::Optional(id)), ("data", Json::Raw(value))]);
        }
        Frame::CallStart { call, .. } => {
            let name = ("toolName", Json::Text(&call.name));
            event("tool-input-start", &[("toolCallId", Json::Text(&call.id)), name, dynamic(call)]);
        }
        Frame::Arguments { call, text } => {
            event("tool-input-delta", &[("toolCallId", Json::Text(&call.id)), ("inputTextDelta", Json::Text(text))]);
        }
        Frame::ArgumentsEnd { call, input, .. } => {
            let name = ("toolName", Json::Text(&call.name));
            event(
                "tool-input-available",
                &[("toolCallId", Json::Text(&call.id)), name, ("input", Json::Raw(input)), dynamic(call)],
            );
        }
        Frame::ArgumentsError { call, message, .. } => {
            let name = ("toolName", Json::Text(&call.name));
            let input = ("input", Json::Raw("{}"));
            let message = ("errorText", Json::Text(message));
            event("tool-input-error", &[("toolCallId", Json::Text(&call.id)), name, input, message, dynamic(call)]);
        }
        Frame::ApprovalRequest { call, approval, reason } => {
            let call = ("toolCallId", Json::Text(&call.id));
            let reason = ("reason", Json::Optional(reason));
            event("tool-approval-request", &[("approvalId", Json::Text(approval)), call, reason]);
        }
        Frame::ApprovalResponse { approval, approved, reason } => {
            let approved = ("approved", Json::Bool(approved));
            let reason = ("reason", Json::Optional(reason));
            event("tool-approval-response", &[("approvalId", Json::Text(approval)), approved, reason]);
        }
        Frame::Result { call, result, .. } => {
            event("tool-output-available", &[("toolCallId", Json::Text(&call.id)), ("output", Json::Raw(result))]);
        }
        Frame::Failure { call, message, .. } => {
            event("tool-output-error", &[("toolCallId", Json::Text(&call.id)), ("errorText", Json::Text(message))]);
        }
        Frame::Denied { call, .. } => event("tool-output-denied", &[("toolCallId", Json::Text(&call.id))]),
        Frame::Status { text } => {
            // Transient data is shown but does not become part of the message.
            let data = json(&[("text", Json::Text(text))]);
            event("data-status", &[("data", Json::Raw(&data)), ("transient", Json::Bool(true))]);
        }
        Frame::StepFinish { .. } => event("finish-step", &[]),
        Frame::Finish { reason, .. } => event("finish", &[("finishReason", Json::Text(reason))]),
        Frame::Error { message, .. } => event("error", &[("errorText", Json::Text(message))]),
        Frame::End => out.extend_from_slice(DONE),
        // The protocol has no frame for a call that stays open.
        Frame::Left(_) => {}
    }
}

/// The name for text, or for reasoning.
fn kind(words: Words, [text, reasoning]: [&'static str; 2]) -> &'static str {
    if words == Words::Text { text } else { reasoning }
}

fn id(part: &Part) -> (&'static str, Json<'_>) {
    ("id", Json::Text(&part.id))
}

fn dynamic(call: &Part) -> (&'static str, Json<'static>) {
    ("dynamic", Json::Flag(call.dynamic))
}
