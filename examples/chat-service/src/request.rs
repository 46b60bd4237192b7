//! Reads what `useChat` posts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::refusal::Refusal;

/// What the person, or their browser, did.
#[derive(Debug)]
pub(crate) enum Act {
    /// They wrote something.
    Text(String),
    /// They decided, or the browser executed, calls that waited.
    Answers(Vec<Answer>),
}

/// One answer to a call that waits.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) said: Said,
}

#[derive(Debug)]
pub(crate) enum Said {
    Approved,
    Denied(Option<String>),
    Output(String),
    Failed,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    id: String,
    messages: Vec<Posted>,
}

#[derive(Deserialize)]
struct Posted {
    role: String,
    parts: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    r#type: String,
    text: Option<String>,
    tool_call_id: Option<String>,
    state: Option<String>,
    output: Option<Box<RawValue>>,
    approval: Option<Approval>,
}

#[derive(Deserialize)]
struct Approval {
    approved: Option<bool>,
    reason: Option<String>,
}

/// The id of the chat and what its last message does.
pub(crate) fn read(body: &[u8]) -> Result<(String, Act), Refusal> {
    let bad = |message: &str| Refusal::BadRequest(message.to_owned());
    let body: Body = serde_json::from_slice(body).map_err(|_| bad("the body is not what `useChat` posts"))?;
    if body.id.is_empty() || body.id.len() > 128 {
        return Err(bad("the id of a chat has 1 to 128 bytes"));
    }
    let last = body.messages.last().ok_or_else(|| bad("there is no message"))?;
    let part = |raw: &Box<RawValue>| serde_json::from_str(raw.get()).map_err(|_| bad("a part is not one of a message"));
    let parts: Vec<Part> = last.parts.iter().map(part).collect::<Result<_, _>>()?;
    let act = match last.role.as_str() {
        "user" => Act::Text(parts.into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n")),
        "assistant" => Act::Answers(parts.into_iter().filter_map(answer).collect()),
        _ => return Err(bad("the last message is neither the user's nor the assistant's")),
    };
    match &act {
        Act::Text(text) if text.trim().is_empty() => Err(bad("the message has no text")),
        _ => Ok((body.id, act)),
    }
}

fn answer(part: Part) -> Option<Answer> {
    if !part.r#type.starts_with("tool-") && part.r#type != "dynamic-tool" {
        return None;
    }
    let said = match (part.state.as_deref()?, part.approval) {
        ("approval-responded", Some(approval)) => match approval.approved? {
            true => Said::Approved,
            false => Said::Denied(approval.reason),
        },
        ("output-available", _) => Said::Output(part.output?.get().to_owned()),
        ("output-error", _) => Said::Failed,
        _ => return None,
    };
    Some(Answer { id: part.tool_call_id?, said })
}
