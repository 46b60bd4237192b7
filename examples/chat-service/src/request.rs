//! Reads what `useChat` posts.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use tool_runtime::agent::{ClientAnswer, Conversation, Incoming};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::wire::Message;

use crate::refusal::Refusal;

/// What is read of a request: the chat, and its last message. Earlier ones are the client's memory, not the server's.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) chat: String,
    last: Last,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    id: String,
    trigger: Option<String>,
    messages: Vec<Last>,
}

#[derive(Debug, Deserialize)]
struct Last {
    role: Role,
    parts: Vec<Part>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    User,
    Assistant,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    r#type: String,
    text: Option<String>,
    tool_call_id: Option<String>,
    state: Option<String>,
    output: Option<Box<RawValue>>,
    approval: Option<Approval>,
}

#[derive(Debug, Deserialize)]
struct Approval {
    approved: Option<bool>,
    reason: Option<String>,
}

/// Reads a body.
pub(crate) fn read(body: &[u8]) -> Result<Posted, Refusal> {
    let body: Body = serde_json::from_slice(body).map_err(|_| Refusal::BadRequest("the body is not a chat's"))?;
    if body.id.is_empty() || body.id.len() > 128 {
        return Err(Refusal::BadRequest("the id of a chat has 1 to 128 bytes"));
    }
    if body.trigger.is_some_and(|trigger| trigger != "submit-message") {
        return Err(Refusal::BadRequest("an answer cannot be asked for again: its tools may have run"));
    }
    let last = body.messages.into_iter().last().ok_or(Refusal::BadRequest("there is no message"))?;
    Ok(Posted { chat: body.id, last })
}

impl Posted {
    /// The person wrote something, so the assistant begins another message.
    pub(crate) fn is_from_user(&self) -> bool {
        self.last.role == Role::User
    }

    /// What the last message brings to this conversation.
    ///
    /// The assistant's message holds all its calls. Those that ended are the server's own words and are passed over;
    /// what is said of others goes to [`Conversation::check`], which refuses it unless they wait for just this.
    pub(crate) fn incoming(self, conversation: &Conversation) -> Result<Incoming, Refusal> {
        if self.last.role == Role::System {
            return Err(Refusal::BadRequest("the last message is neither the user's nor the assistant's"));
        }
        if self.is_from_user() {
            let text: Vec<_> = self.last.parts.into_iter().filter_map(|part| part.text).collect();
            return match text.join("\n") {
                text if text.trim().is_empty() => Err(Refusal::BadRequest("the message has no text")),
                text => Ok(Incoming::new().text(text)),
            };
        }
        let waiting: HashSet<_> = conversation.waiting().map(|call| call.id.to_string()).collect();
        let ended: HashSet<_> =
            conversation.history().iter().filter_map(ended).filter(|id| !waiting.contains(id)).collect();
        let mut incoming = None;
        for part in self.last.parts {
            if let Some((id, said)) = part.said()
                && !(ended.contains(&id) && matches!(said, Said::Output(_)))
            {
                incoming = Some(said.add_to(incoming.unwrap_or_default(), id));
            }
        }
        incoming.ok_or(Refusal::NotWaiting)
    }
}

fn ended(message: &Message) -> Option<String> {
    match message {
        Message::Result(result) => Some(result.id.to_string()),
        _ => None,
    }
}

/// What a client says of a call.
enum Said {
    Decided(ApprovalDecision),
    Output(ClientAnswer),
}

impl Said {
    fn add_to(self, incoming: Incoming, id: String) -> Incoming {
        match self {
            Self::Decided(decision) => incoming.decide(id, decision),
            Self::Output(answer) => incoming.answer(answer),
        }
    }
}

impl Part {
    fn said(self) -> Option<(String, Said)> {
        let id = self.tool_call_id.filter(|_| self.r#type.starts_with("tool-"))?;
        let said = match (self.state.as_deref()?, self.approval, self.output) {
            ("approval-responded", Some(approval), _) => Said::Decided(if approval.approved? {
                ApprovalDecision::Approve
            } else {
                ApprovalDecision::Deny(approval.reason)
            }),
            ("output-available", _, Some(output)) => Said::Output(ClientAnswer::value(id.as_str(), output.get())),
            ("output-error", ..) => Said::Output(ClientAnswer::Failed { id: id.as_str().into() }),
            _ => return None,
        };
        Some((id, said))
    }
}
