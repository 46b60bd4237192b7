//! Makes a call. If the server turns the call into a task (SEP-2663), the client polls the task until it ends, or until
//! the time limit of the call.
//!
//! The poll interval, the duration of a task and the size of its answers are bounded. The client cancels a task that
//! does not end in time, or whose caller is gone; its effect is then unknown. A task cannot request input from this
//! client.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::mcp::source::connection::Connection;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::http::Route;
use crate::mcp::source::http::headers::{self, ParamHeader};
use crate::mcp::source::message;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The maximum length of a task's id, in bytes. The id is sent as a header.
const MAX_ID_BYTES: usize = 256;

/// The shortest poll interval.
const SOONEST: Duration = Duration::from_millis(50);

/// The default poll interval.
const USUALLY: Duration = Duration::from_secs(1);

/// The longest poll interval.
const LATEST: Duration = Duration::from_secs(5);

/// A server's description of a task, which it sends in place of a result and in answer to a poll.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskStatus<'a> {
    #[serde(borrow)]
    result_type: Option<&'a RawValue>,
    #[serde(borrow)]
    task_id: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    poll_interval_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Sends a call and returns its result, even if the server turns it into a task.
pub(super) async fn call(
    connection: &Arc<Connection>,
    (tool, headers): (&str, &[ParamHeader]),
    arguments: &Value,
    within: Duration,
) -> Result<Box<str>, RequestError> {
    let until = Instant::now() + within;
    let params = json!({"name": tool, "arguments": arguments});
    let route = Route { name: Some(tool), params: &headers::of(headers, arguments) };
    let answer = connection.request("tools/call", route, params, within).await?;
    let Some((id, wait)) = created(&answer)? else { return Ok(answer) };
    let mut task = Task { connection: Arc::clone(connection), id, is_open: true };
    task.ended(wait, until).await
}

/// Reads the id of a task that the server created, and the poll interval. `None` if the answer is a result.
fn created(answer: &str) -> Result<Option<(String, Duration)>, RequestError> {
    let Ok(status) = serde_json::from_str::<TaskStatus<'_>>(answer) else { return Ok(None) };
    if status.result_type.map(RawValue::get) != Some("\"task\"") {
        return Ok(None);
    }
    let id = status
        .id()
        .filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()));
    let id = id.ok_or(RequestError::Protocol("the server turned the call into a task without a usable id"))?;
    Ok(Some((id, status.interval())))
}

/// Whether the result of a task is the result of the call. The answer is also `true` for a result that cannot be read;
/// reading it later fails.
fn is_complete(result: &str) -> bool {
    let Ok(status) = serde_json::from_str::<TaskStatus<'_>>(result) else { return true };
    status.result_type.is_none_or(|kind| kind.get() == "\"complete\"")
}

impl TaskStatus<'_> {
    fn id(&self) -> Option<String> {
        message::string(self.task_id?.get())
    }

    /// Returns the poll interval that the server requests, within bounds.
    fn interval(&self) -> Duration {
        let wished = self.poll_interval_ms.and_then(|millis| millis.get().parse().ok()).map(Duration::from_millis);
        wished.unwrap_or(USUALLY).clamp(SOONEST, LATEST)
    }
}

/// A task whose result is awaited. Dropping it before its end cancels the task.
struct Task {
    connection: Arc<Connection>,
    id: String,
    is_open: bool,
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.is_open {
            self.connection.send_unheard("tasks/cancel", &self.id, json!({"taskId": self.id}));
        }
    }
}

impl Task {
    async fn ended(&mut self, mut wait: Duration, until: Instant) -> Result<Box<str>, RequestError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(RequestError::Timeout);
            }
            sleep(wait.min(left)).await;
            // At least a moment, so that the last poll at the deadline can still be answered.
            let left = until.saturating_duration_since(Instant::now()).max(SOONEST);
            let asked = json!({"taskId": self.id});
            let text = match self.connection.request("tasks/get", Route::to(&self.id), asked, left).await {
                Ok(text) => text,
                // A temporary failure of the server, which still has the task.
                Err(RequestError::Status(429 | 500..=599, _) | RequestError::NotSent(_)) => continue,
                Err(RequestError::Unauthorized) => {
                    return Err(RequestError::Protocol(
                        "the server refused the credentials before the task of the call ended",
                    ));
                }
                Err(RequestError::Refused { .. }) => {
                    return Err(RequestError::Protocol("the server no longer knows the task of the call"));
                }
                Err(failure) if failure.had_no_effect() => return Err(RequestError::Poll(Box::new(failure))),
                Err(failure) => return Err(failure),
            };
            let status: TaskStatus<'_> = serde_json::from_str(&text).map_err(|_| RequestError::Unreadable)?;
            if status.id().as_ref() != Some(&self.id) {
                return Err(RequestError::Protocol("the server answered with a task other than the requested one"));
            }
            match status.status.map(RawValue::get) {
                Some("\"working\"") => wait = status.interval(),
                Some("\"completed\"") => {
                    self.is_open = false;
                    let result = status.result.ok_or(RequestError::Unreadable)?.get();
                    // A result of another type would mean that the call is not done yet.
                    if !is_complete(result) {
                        return Err(RequestError::Protocol("the task of the call ended with a result of another type"));
                    }
                    return Ok(result.into());
                }
                Some("\"failed\"") => {
                    self.is_open = false;
                    return Err(status.error.map_or(RequestError::Unreadable, |error| message::refused(error.get())));
                }
                Some("\"cancelled\"") => {
                    self.is_open = false;
                    return Err(RequestError::Protocol("the server cancelled the task of the call"));
                }
                Some("\"input_required\"") => {
                    return Err(RequestError::Protocol("the task of the call requests input, which is not supported"));
                }
                _ => return Err(RequestError::Unreadable),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_task_is_one() {
        for result in ["{}", "[]", r#"{"content":[]}"#, r#"{"resultType":"complete","taskId":"7","status":"working"}"#]
        {
            assert_eq!(created(result), Ok(None), "{result}");
        }
        let made = created(r#"{"resultType":"task","taskId":"7","status":"working","pollIntervalMs":200}"#);
        assert_eq!(made, Ok(Some(("7".to_owned(), Duration::from_millis(200)))));
        for id in ["7", r#""""#, r#""a b""#, r#""a\n""#, "null", &format!("\"{}\"", "x".repeat(257))] {
            assert!(created(&format!(r#"{{"resultType":"task","taskId":{id}}}"#)).is_err(), "{id}");
        }
    }

    #[test]
    fn the_interval_is_the_servers_within_bounds() {
        for (wished, interval) in [
            ("0", SOONEST),
            ("300", Duration::from_millis(300)),
            ("99999999999", LATEST),
            ("-5", USUALLY),
            ("1e9", USUALLY),
            ("\"7\"", USUALLY),
            ("null", USUALLY),
        ] {
            let status = format!(r#"{{"pollIntervalMs":{wished}}}"#);
            assert_eq!(serde_json::from_str::<TaskStatus<'_>>(&status).unwrap().interval(), interval, "{wished}");
        }
    }
}
