//! Reads what `useChat` posts.

use serde::Deserialize;
use tool_runtime::agent::{ClientAnswer, Conversation, Incoming};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::Suspension;
use tool_runtime::wire::ui::{Asked, ChatAnswer, ChatReader, ChatRequest};

use crate::refusal::Refusal;

/// The id of the chat, which is needed before anything else can be judged.
pub(crate) fn chat(body: &[u8]) -> Result<String, Refusal> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let named: Named = serde_json::from_slice(body).map_err(|_| Refusal::NoChat)?;
    if (1..=128).contains(&named.id.len()) { Ok(named.id) } else { Err(Refusal::NoChat) }
}

/// What the body brings to this conversation. Only answers to calls that wait and the user's last text are taken; a
/// body that claims more is refused.
pub(crate) fn read(body: &[u8], conversation: &Conversation) -> Result<ChatRequest, Refusal> {
    let waiting = conversation.waiting().map(|call| {
        let asked = match call.suspension {
            Suspension::Approval => Asked::Approval,
            Suspension::Client => Asked::Client,
        };
        (call.id.clone(), asked)
    });
    Ok(ChatReader::new(&conversation.history(), waiting).read(body)?)
}

pub(crate) fn incoming(request: ChatRequest) -> Incoming {
    let mut incoming = Incoming::new();
    for answer in request.answers {
        incoming = match answer {
            ChatAnswer::Decision { id, approved: true, .. } => incoming.decide(id, ApprovalDecision::Approve),
            ChatAnswer::Decision { id, reason, .. } => incoming.decide(id, ApprovalDecision::Deny(reason)),
            ChatAnswer::Output { id, json } => incoming.answer(ClientAnswer::value(id, json)),
            ChatAnswer::Failed { id } => incoming.answer(ClientAnswer::Failed { id }),
            _ => incoming,
        };
    }
    match request.text {
        Some(text) => incoming.text(text),
        None => incoming,
    }
}
