//! `assistant-transport`: server-sent events that address the message's parts by path.

use crate::wire::ui::frame::{DONE, Frame, Json, Part, SOURCE, Words, document, json, sse};

/// The name of the protocol.
pub(super) const NAME: &str = "assistant-transport";

/// The path of the message itself.
const MESSAGE: (&str, Json<'_>) = ("path", Json::Path(None));

pub(super) fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    match *frame {
        Frame::StepStart { id } => sse(out, &[kind("step-start"), ("messageId", Json::Text(id)), MESSAGE]),
        Frame::WordsStart(Words::Text, _) => start(out, &[kind("text")]),
        Frame::WordsStart(Words::Reasoning, _) => start(out, &[kind("reasoning")]),
        Frame::CallStart { call, parent, .. } => {
            let id = ("toolCallId", Json::Text(&call.id));
            let name = ("toolName", Json::Text(&call.name));
            start(out, &[kind("tool-call"), id, name, ("parentId", Json::Optional(parent))]);
        }
        Frame::Source { index, id, url: Some(url), title } => {
            let (source, title) = (("sourceType", Json::Text("url")), ("title", Json::Optional(title)));
            whole(out, index, &[kind("source"), source, ("id", Json::Text(id)), ("url", Json::Text(url)), title]);
        }
        Frame::Source { index, id, url: None, title } => data(out, index, SOURCE, &document(id, title)),
        Frame::File { index, media_type, url } => {
            whole(out, index, &[kind("file"), ("data", Json::Text(url)), ("mimeType", Json::Text(media_type))]);
        }
        Frame::Data { index, name, value, .. } => data(out, index, name, value),
        Frame::Words { part, text, .. } | Frame::Arguments { call: part, text } => {
            sse(out, &[kind("text-delta"), ("textDelta", Json::Text(text)), path(part)]);
        }
        Frame::ArgumentsEnd { call, input, streamed, .. } => end(out, call, (!streamed).then_some(input)),
        Frame::ArgumentsError { call, streamed, .. } => end(out, call, (!streamed).then_some("{}")),
        Frame::Result { call, result, artifact } => settle(out, call, result, false, artifact),
        Frame::Failure { call, result, .. } | Frame::Denied { call, result } => settle(out, call, result, true, None),
        Frame::WordsEnd(_, part) | Frame::Left(part) => sse(out, &[kind("part-finish"), path(part)]),
        Frame::Status { text } => {
            let status = [json(&[kind("status"), ("text", Json::Text(text))])];
            sse(out, &[kind("data"), ("data", Json::List(&status)), MESSAGE]);
        }
        Frame::StepFinish { reason, usage, continued } => {
            let continued = ("isContinued", Json::Bool(continued));
            let reason = ("finishReason", Json::Text(reason));
            sse(out, &[kind("step-finish"), reason, ("usage", Json::Usage(usage)), continued, MESSAGE]);
        }
        Frame::Finish { reason, usage, .. } => {
            let reason = ("finishReason", Json::Text(reason));
            sse(out, &[kind("message-finish"), reason, ("usage", Json::Usage(usage)), MESSAGE]);
        }
        Frame::Error { message, .. } => sse(out, &[kind("error"), ("error", Json::Text(message)), MESSAGE]),
        Frame::End => out.extend_from_slice(DONE),
        // The protocol has no frames for the start of a message or for approvals.
        Frame::MessageStart { .. } | Frame::ApprovalRequest { .. } | Frame::ApprovalResponse { .. } => {}
    }
}

fn kind(name: &str) -> (&str, Json<'_>) {
    ("type", Json::Text(name))
}

fn path(part: &Part) -> (&'static str, Json<'static>) {
    ("path", Json::Path(Some(part.index)))
}

fn start(out: &mut Vec<u8>, part: &[(&str, Json<'_>)]) {
    sse(out, &[kind("part-start"), ("part", Json::Raw(&json(part))), MESSAGE]);
}

/// Writes a part that has no deltas.
fn whole(out: &mut Vec<u8>, index: usize, part: &[(&str, Json<'_>)]) {
    start(out, part);
    sse(out, &[kind("part-finish"), ("path", Json::Path(Some(index)))]);
}

fn data(out: &mut Vec<u8>, index: usize, name: &str, value: &str) {
    whole(out, index, &[kind("data"), ("name", Json::Text(name)), ("data", Json::Raw(value))]);
}

fn end(out: &mut Vec<u8>, call: &Part, rest: Option<&str>) {
    if let Some(text) = rest {
        sse(out, &[kind("text-delta"), ("textDelta", Json::Text(text)), path(call)]);
    }
    sse(out, &[kind("tool-call-args-text-finish"), path(call)]);
}

fn settle(out: &mut Vec<u8>, call: &Part, result: &str, is_error: bool, artifact: Option<&str>) {
    let result = ("result", Json::Raw(result));
    let artifact = ("artifact", Json::OptionalRaw(artifact));
    sse(out, &[kind("result"), result, artifact, ("isError", Json::Bool(is_error)), path(call)]);
    sse(out, &[kind("part-finish"), path(call)]);
}
