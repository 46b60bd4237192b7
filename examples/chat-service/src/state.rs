//! [`ChatState`]: the messages and the waiting calls of a chat, for the page.

use serde::Serialize;
use serde_json::Value;
use tool_runtime::agent::WaitingCall;
use tool_runtime::call::{CallId, Suspension};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::{PendingCall, RecordFilter, StoredRun};
use tool_runtime::wire::Message;

use crate::Service;
use crate::people::Person;
use crate::refusal::Refusal;

/// The data of a chat for the page.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatState {
    /// The person who chats, for whom the model acts.
    principal: String,
    tenant: String,
    /// Whether a turn is running or a posted decision waits, so that the page has to poll again.
    running: bool,
    messages: Vec<ChatMessage>,
    waiting: Vec<ChatCall>,
}

#[derive(Serialize)]
struct ChatMessage {
    role: &'static str,
    text: String,
}

/// A call that waits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChatCall {
    call: String,
    /// The id of the question, which a decision names.
    question: String,
    tool: String,
    /// Whether the call waits for the browser and not for a decision.
    is_client: bool,
    /// The prepared data for the browser.
    payload: Option<Value>,
    /// The author's sentence about the call, with its arguments.
    sentence: Option<String>,
    /// The arguments, with sensitive ones masked.
    arguments: Option<Value>,
    /// Whether the policy lets this person decide.
    may_decide: bool,
    /// Whether a posted decision has not been carried out yet.
    decided: bool,
    /// The number of people who have to approve the call.
    required: u32,
    /// The people who have approved the call so far, if it needs several.
    approved_by: Vec<String>,
    expires: Option<String>,
}

impl Service {
    /// Reads a chat of a person without a lease, in the state after its last step.
    pub(crate) async fn state(&self, person: &Person, id: &str) -> Result<ChatState, Refusal> {
        let run_id = person.run_id(id);
        let (principal, tenant) = (person.name.to_string(), person.tenant.to_string());
        let state = ChatState { principal, tenant, ..ChatState::default() };
        let (run, saved) = match self.queue.find(&run_id, Some(&person.tenant)).await {
            Err(ResumeError::UnknownRun) => return Ok(state),
            found => found?,
        };
        if run.principal.as_deref() != Some(&person.name) {
            return Ok(state);
        }
        // Since the chat was saved, another process may have changed a call: a person approved it, or edited it.
        let mut filter = RecordFilter::run(run_id.as_str());
        (filter.tenant, filter.principal) = (run.tenant.clone(), run.principal.clone());
        let now = self.runner.store().pending_calls(&filter).await?;
        let now: Vec<_> = now.into_iter().flatten().collect();
        let mut waiting = Vec::new();
        for call in saved.waiting() {
            let now = now.iter().find(|now| now.call_id == call.id);
            waiting.push(self.waits(person, &run, call, now).await);
        }
        let running = &*run.state == "running" || run.posts() > 0;
        // The history has a placeholder result for a call that waits. The page does not show it.
        let waits = |id: &CallId| saved.waiting().any(|call| call.id == *id);
        let history = saved.history().into_iter();
        let shown = history.filter(|message| !matches!(message, Message::Result(result) if waits(&result.id)));
        let messages = shown.filter_map(|message| said(&message)).collect();
        Ok(ChatState { running, messages, waiting, ..state })
    }

    /// Describes a waiting call, from the saved chat and from the current state of the call (`now`).
    async fn waits(&self, person: &Person, run: &StoredRun, call: &WaitingCall, now: Option<&PendingCall>) -> ChatCall {
        let is_client = call.suspension == Suspension::Client;
        let question = now.map_or_else(|| call.question.clone(), PendingCall::question);
        let may_decide = !is_client && self.queue.may_decide(&run.run_id, &question, &person.decider()).await.is_ok();
        let (approvals, required) = now.map_or((&call.approvals[..], call.required), PendingCall::approvals);
        let json = |text: &tool_runtime::call::JsonText| serde_json::from_str(text.get()).ok();
        ChatCall {
            call: call.id.to_string(),
            decided: run.is_answered(&question),
            question: question.to_string(),
            tool: call.name.clone(),
            is_client,
            payload: call.payload.as_ref().and_then(json),
            sentence: now.map_or(&call.summary, |now| &now.summary).clone(),
            arguments: now.map_or(call.shown_arguments.as_ref(), |now| Some(&now.shown_arguments)).and_then(json),
            may_decide,
            required,
            approved_by: approvals.iter().map(|decider| decider.principal().to_owned()).collect(),
            expires: call.expires_at.map(|time| time.to_string()),
        }
    }
}

/// Returns the role and the text of a message; `None` for a message without text.
fn said(message: &Message) -> Option<ChatMessage> {
    let role = match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::Result(_) => "tool",
        _ => return None,
    };
    let text = message.text();
    (!text.is_empty()).then_some(ChatMessage { role, text })
}
