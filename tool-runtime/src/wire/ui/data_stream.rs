//! `data-stream`: lines of a letter and a JSON value, for `assistant-stream`.

use crate::wire::ui::frame::{Frame, Json, SOURCE, Words, document, object, text};

/// The name of the protocol.
pub(super) const NAME: &str = "data-stream";

pub(super) fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    match *frame {
        Frame::StepStart { id } => line(out, b'f', &[("messageId", Json::Text(id))]),
        Frame::Words { words: Words::Text, text, .. } => value(out, b'0', text),
        Frame::Words { words: Words::Reasoning, text, .. } => value(out, b'g', text),
        Frame::Source { id, url: Some(url), title, .. } => {
            let kind = ("sourceType", Json::Text("url"));
            let title = ("title", Json::Optional(title));
            line(out, b'h', &[kind, ("id", Json::Text(id)), ("url", Json::Text(url)), title]);
        }
        Frame::Source { id, url: None, title, .. } => data(out, SOURCE, &document(id, title)),
        Frame::File { media_type, url, .. } => {
            line(out, b'k', &[("data", Json::Text(url)), ("mimeType", Json::Text(media_type))]);
        }
        Frame::Data { name, value, .. } => data(out, name, value),
        Frame::CallStart { call, parent, .. } => {
            let members = [
                ("toolCallId", Json::Text(&call.id)),
                ("toolName", Json::Text(&call.name)),
                ("parentId", Json::Optional(parent)),
            ];
            line(out, b'b', &members);
        }
        Frame::Arguments { call, text } => {
            line(out, b'c', &[("toolCallId", Json::Text(&call.id)), ("argsTextDelta", Json::Text(text))]);
        }
        Frame::ArgumentsEnd { call, input, streamed, .. } => end(out, &call.id, if streamed { "" } else { input }),
        Frame::ArgumentsError { call, streamed, .. } => end(out, &call.id, if streamed { "" } else { "{}" }),
        Frame::Result { call, result, artifact } => {
            let members = [
                ("toolCallId", Json::Text(&call.id)),
                ("result", Json::Raw(result)),
                ("artifact", Json::OptionalRaw(artifact)),
            ];
            line(out, b'a', &members);
        }
        Frame::Failure { call, result, .. } | Frame::Denied { call, result } => {
            let members =
                [("toolCallId", Json::Text(&call.id)), ("result", Json::Raw(result)), ("isError", Json::Bool(true))];
            line(out, b'a', &members);
        }
        Frame::Status { text } => {
            out.extend_from_slice(b"2:[");
            object(out, &[("type", Json::Text("status")), ("text", Json::Text(text))]);
            out.extend_from_slice(b"]\n");
        }
        Frame::StepFinish { reason, usage, continued } => {
            let members = [
                ("finishReason", Json::Text(reason)),
                ("usage", Json::Usage(usage)),
                ("isContinued", Json::Bool(continued)),
            ];
            line(out, b'e', &members);
        }
        Frame::Finish { reason, usage, .. } => {
            line(out, b'd', &[("finishReason", Json::Text(reason)), ("usage", Json::Usage(usage))]);
        }
        Frame::Error { message, .. } => value(out, b'3', message),
        // The protocol has no frames for the start of a message, for parts or for approvals.
        Frame::MessageStart { .. }
        | Frame::WordsStart(..)
        | Frame::WordsEnd(..)
        | Frame::ApprovalRequest { .. }
        | Frame::ApprovalResponse { .. }
        | Frame::Left(_)
        | Frame::End => {}
    }
}

fn end(out: &mut Vec<u8>, id: &str, rest: &str) {
    let members = [("toolCallId", Json::Text(id)), ("argsTextDelta", Json::Text(rest)), ("isFinal", Json::Bool(true))];
    line(out, b'c', &members);
}

fn data(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b"aui-data:");
    object(out, &[("name", Json::Text(name)), ("data", Json::Raw(value))]);
    out.push(b'\n');
}

fn line(out: &mut Vec<u8>, letter: u8, members: &[(&str, Json<'_>)]) {
    out.extend_from_slice(&[letter, b':']);
    object(out, members);
    out.push(b'\n');
}

fn value(out: &mut Vec<u8>, letter: u8, string: &str) {
    out.extend_from_slice(&[letter, b':']);
    text(out, string);
    out.push(b'\n');
}
