//! The state of a chat for the page: its messages, and the calls that wait.

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

/// A chat as the page shows it.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatState {
    /// The person whose token the request has. The model acts for them.
    principal: String,
    tenant: String,
    /// Whether a turn has not ended, so that the page looks again.
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
    /// The question that a decision answers.
    question: String,
    tool: String,
    /// Whether the call waits for the browser, not for a person.
    is_client: bool,
    /// The request to the browser.
    payload: Option<Value>,
    /// The sentence of the tool's author, with the arguments.
    sentence: Option<String>,
    /// The arguments, sensitive ones masked.
    arguments: Option<Value>,
    /// Whether this person may decide, by the policy.
    may_decide: bool,
    /// Whether a decision was posted that the service has not carried out yet.
    decided: bool,
    /// The number of people who have to approve the call.
    required: u32,
    /// The people who have approved it so far, if it needs several.
    approved_by: Vec<String>,
    expires: Option<String>,
}

impl Service {
    /// Reads a chat of a person without taking it, as it was saved after its last step.
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
        // Another process can have changed a call since the chat was saved: a person approved it, or edited it.
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
        // A call that waits has no result yet; the history has a placeholder for the model.
        let waits = |id: &CallId| saved.waiting().any(|call| call.id == *id);
        let history = saved.history().into_iter();
        let shown = history.filter(|message| !matches!(message, Message::Result(result) if waits(&result.id)));
        let messages = shown.filter_map(|message| said(&message)).collect();
        Ok(ChatState { running, messages, waiting, ..state })
    }

    /// Describes a call that waits, as it was saved and as it waits now.
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

/// The role and the text of a message; `None` for turns without text.
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
