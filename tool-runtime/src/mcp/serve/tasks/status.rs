//! Descriptions of tasks for clients.

use rmcp::model::{ErrorData, JsonObject, Task, TaskStatus};
use serde::Serialize;
use serde_json::json;

use crate::call::{CallId, Outcome};
use crate::mcp::serve::error::{SERVER_ERROR, broken};
use crate::mcp::serve::tasks::run_tasks::{Look, State};
use crate::store::StoreError;

/// The maximum length of a task's id, in bytes.
pub(super) const MAX_ID_BYTES: usize = 256;

/// How often a client should poll, in milliseconds.
const POLL_MILLIS: u64 = 1000;

/// Returns the protocol's description of a task.
pub(super) fn described(id: String, look: &Look) -> Task {
    let (status, said) = match &look.state {
        State::Waits(_) => (TaskStatus::InputRequired, "The call waits for the approval of a person."),
        State::Works if look.questions.is_empty() => (TaskStatus::Working, "The call runs."),
        State::Works => (TaskStatus::InputRequired, "The call runs, and waits for input."),
        State::Unsettled(..) => {
            (TaskStatus::InputRequired, "It is unknown whether the call took effect. The client may settle it.")
        }
        State::Settled(_) => (TaskStatus::Completed, "The outcome of the call was unknown, and has been settled."),
        State::Ended(result) if result.outcome() == Outcome::Cancelled => {
            (TaskStatus::Cancelled, "The call was cancelled.")
        }
        State::Ended(_) => (TaskStatus::Completed, "The call has ended."),
    };
    let (created, updated) = (look.saved.created, look.updated);
    let lasts = look.until.duration_since(created).as_millis();
    Task::new(id, status, created.to_string(), updated.to_string())
        .with_status_message(said)
        .with_ttl_ms(u64::try_from(lasts).unwrap_or_default())
        .with_poll_interval_ms(POLL_MILLIS)
}

/// Returns the id of a task, made of its run and its call. `None` if a client could not send the id in a header.
pub(super) fn task_id(run_id: &str, call: &CallId) -> Option<String> {
    let id = format!("{run_id}.{call}");
    let is_sent = id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
    (is_sent && !call.as_str().contains('.')).then_some(id)
}

/// Returns the error for a call beyond a limit of suspended calls: that of its principal, or that of the server.
pub(super) fn too_many(limit: usize) -> ErrorData {
    let message = format!("The limit of {limit} waiting calls is reached. Try again when some have ended.");
    ErrorData::new(SERVER_ERROR, message, Some(json!({"code": "too_many_tasks", "limit": limit})))
}

/// Returns the error for a call that needs an approval that no person can give.
pub(super) fn no_decider(is_twin: bool) -> ErrorData {
    let message = if is_twin {
        "An earlier call with the same effect has an unknown outcome: it may have taken effect. This call needs an \
         approval, but no approver can reach it. It did not run. Do not repeat it; look up the effect, or ask the user."
    } else {
        "This call needs an approval, but no approver can reach it. Use a client that supports forms, or a server with \
         a shared store."
    };
    ErrorData::new(SERVER_ERROR, message, Some(json!({"code": "no_decider"})))
}

/// Returns the error for a task that does not exist, is over, or belongs to another party. All three get the same
/// error.
pub(super) fn unknown() -> ErrorData {
    ErrorData::invalid_params("There is no such task.", None)
}

pub(super) fn failed(error: &StoreError) -> ErrorData {
    tracing::warn!(error = error.code(), "a task could not be read");
    broken()
}

pub(super) fn object(value: &impl Serialize) -> Result<JsonObject, ErrorData> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::Object(object)) => Ok(object),
        _ => Err(broken()),
    }
}
