//! [`Questions`]: the questions that a task's call asks its client. The client reads them with `tasks/get` and answers
//! with `tasks/update`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rmcp::model::{ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationSchema, InputRequest, InputRequests};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::capability::{ClientError, Elicit};
use crate::mcp::serve::client::filled;
use crate::runner::{ApprovalDecision, Run};
use crate::store::PendingCall;
use crate::text::sentence;

/// The maximum length of a question about a call, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 2048;

/// The open questions of one call. Each key is used only once.
#[derive(Default)]
pub(in crate::mcp::serve) struct Questions {
    asked: Mutex<Elicitations>,
    /// Notified of each new question.
    news: Notify,
}

#[derive(Default)]
struct Elicitations {
    count: u64,
    open: BTreeMap<String, (ElicitRequestParams, oneshot::Sender<ElicitResult>)>,
    /// Whether the questions are closed, so that the call cannot ask another one.
    closed: bool,
}

impl Questions {
    fn asked(&self) -> MutexGuard<'_, Elicitations> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked().open.is_empty()
    }

    /// Resolves when the call has asked a question.
    pub(super) async fn asked_something(&self) {
        self.news.notified().await;
    }

    /// Ends the open questions, and allows no new ones.
    pub(super) fn close(&self) {
        let mut asked = self.asked();
        asked.closed = true;
        let open = std::mem::take(&mut asked.open);
        drop(asked);
        drop(open);
    }

    /// Returns the open questions in the protocol's form.
    pub(super) fn requests(&self) -> InputRequests {
        let asked = self.asked();
        asked.open.iter().map(|(key, (question, _))| (key.clone(), request(question.clone()))).collect()
    }

    /// Passes an answer to the tool. Ignores an unreadable answer, and an answer to a closed question.
    pub(super) fn answer(&self, key: &str, answer: &Value) {
        let Ok(answer) = serde_json::from_value(answer.clone()) else { return };
        let asked = self.asked().open.remove(key);
        if let Some((_, asked)) = asked {
            // The receiver is gone if the call ended meanwhile.
            let _ = asked.send(answer);
        }
    }
}

pub(super) fn request(question: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(question))
}

pub(super) fn form(message: String, form: &Value) -> Result<ElicitRequestParams, ClientError> {
    let requested_schema: ElicitationSchema = serde_json::from_value(form.clone()).map_err(|_| ClientError::Form)?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Lets a tool ask questions while its call is a task.
pub(super) struct Asks {
    pub(super) questions: Arc<Questions>,
    pub(super) run: Run,
}

/// An open question. It is withdrawn when the tool stops waiting for the answer.
struct Open<'a> {
    questions: &'a Questions,
    key: String,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let closed = self.questions.asked().open.remove(&self.key);
        drop(closed);
    }
}

#[async_trait]
impl Elicit for Asks {
    async fn ask(&self, message: &str, wanted: &Value) -> Result<Value, ClientError> {
        let question = form(message.to_owned(), wanted)?;
        let (sender, answer) = oneshot::channel();
        let open = {
            let mut asked = self.questions.asked();
            if asked.closed {
                return Err(ClientError::Unsupported);
            }
            asked.count += 1;
            let key = format!("question-{}", asked.count);
            asked.open.insert(key.clone(), (question, sender));
            Open { questions: &self.questions, key }
        };
        self.questions.news.notify_one();
        let answer = answer.await.map_err(|_| ClientError::Cancelled)?;
        drop(open);
        filled(&self.run, wanted, answer)
    }
}

/// Returns the question whether a call may run, as a message and a form, for a principal with the right to decide.
pub(super) fn asked(name: &str, call: &PendingCall) -> (String, Value) {
    let (said, ..) = call.decided_explanation();
    let message = match said {
        // The library's own sentences do not describe the call, so add its tool and its arguments.
        Some(said) if call.graph.is_none() && call.sentence().is_none() => {
            sentence(&format!("{said} May `{name}` run with {}?", call.shown_arguments.get()), MAX_MESSAGE_BYTES)
        }
        Some(said) => sentence(said, MAX_MESSAGE_BYTES),
        None if call.graph.is_some() => format!("`{name}` asks whether it may call `{}`.", call.decided_tool()),
        None => sentence(&format!("May `{name}` run with {}?", call.shown_arguments.get()), MAX_MESSAGE_BYTES),
    };
    let message = match call.approval_status() {
        Some(status) => format!("{message} {status}"),
        None => message,
    };
    let wanted = json!({
        "type": "object",
        "properties": {"approve": {"type": "boolean", "title": "Approve", "description": "Whether the call may run."}},
        "required": ["approve"],
    });
    (message, wanted)
}

/// Returns the question whether a call may run, in the protocol's form.
pub(super) fn approval(name: &str, call: &PendingCall) -> Option<InputRequest> {
    let (message, wanted) = asked(name, call);
    form(message, &wanted).ok().map(request)
}

/// Returns the decision in an answer to the question whether a call may run. `None` if the answer contains none.
pub(super) fn decision(answer: &Value) -> Option<ApprovalDecision> {
    let approves = answer.get("content").and_then(|content| content.get("approve")).and_then(Value::as_bool);
    match (answer.get("action").and_then(Value::as_str)?, approves) {
        ("accept", Some(true)) => Some(ApprovalDecision::Approve),
        ("accept", Some(false)) | ("decline", _) => Some(ApprovalDecision::Deny(None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_decides() {
        let decides = |answer: Value| decision(&answer);
        assert_eq!(decides(json!({"action": "accept", "content": {"approve": true}})), Some(ApprovalDecision::Approve));
        for no in [json!({"action": "accept", "content": {"approve": false}}), json!({"action": "decline"})] {
            assert_eq!(decides(no), Some(ApprovalDecision::Deny(None)));
        }
        for nothing in [
            json!({"action": "cancel", "content": {"approve": true}}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"approve": "true"}}),
            json!({"content": {"approve": true}}),
            json!(null),
        ] {
            assert_eq!(decides(nothing), None);
        }
    }
}
