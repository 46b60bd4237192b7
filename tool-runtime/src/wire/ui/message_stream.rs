//! `ui-message-stream`: server-sent events of the `ai` package; the only protocol with approvals.

use crate::wire::ui::frame::{DONE, Frame, Json, Part, object, sse};

/// The name of the protocol.
pub(super) const NAME: &str = "ui-message-stream";

pub(super) fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let mut event = |name, members: &[(&str, Json<'_>)]| {
        let mut all = vec![("type", Json::Text(name))];
        all.extend_from_slice(members);
        sse(out, &all);
    };
    match *frame {
        Frame::MessageStart { id } => event("start", &[("messageId", Json::Text(id))]),
        Frame::StepStart { .. } => event("start-step", &[]),
        Frame::TextStart(part) => event("text-start", &[("id", Json::Text(&part.id))]),
        Frame::Text { part, text } => event("text-delta", &[("id", Json::Text(&part.id)), ("delta", Json::Text(text))]),
        Frame::TextEnd(part) => event("text-end", &[("id", Json::Text(&part.id))]),
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
            let mut data = Vec::new();
            object(&mut data, &[("text", Json::Text(text))]);
            // Transient: it is shown, but it does not become a part of the message.
            let data = String::from_utf8_lossy(&data);
            event("data-status", &[("data", Json::Raw(&data)), ("transient", Json::Bool(true))]);
        }
        Frame::StepFinish { .. } => event("finish-step", &[]),
        Frame::Finish { reason, .. } => event("finish", &[("finishReason", Json::Text(reason))]),
        Frame::Error { message } => event("error", &[("errorText", Json::Text(message))]),
        Frame::End => out.extend_from_slice(DONE),
        // The protocol does not end the part of a call that stays open.
        Frame::Left(_) => {}
    }
}

fn dynamic(call: &Part) -> (&'static str, Json<'static>) {
    ("dynamic", Json::Flag(call.dynamic))
}
