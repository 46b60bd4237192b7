//! JSON-RPC messages: what is sent, and what a line or an event holds, read no deeper than its envelope.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::json::{self, Limits};
use crate::mcp::source::error::Failure;
use crate::text::sentence;

/// The longest message of an error that is kept, in bytes.
const MAX_ERROR_BYTES: usize = 2048;

/// The longest id of a request of the server, which is sent back.
const MAX_ID_BYTES: usize = 256;

/// A message of the server.
pub(super) enum Incoming {
    /// The answer to a request of this side.
    Answer(u64, Result<Box<str>, Failure>),
    /// A request, with its id as it was written.
    Request { id: String, is_ping: bool },
    /// A notification.
    Notification { is_list_changed: bool },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Reads a message; `None` if it is not one. What it carries is not parsed, so that half a surrogate pair or a deep
/// value costs only what it is in.
pub(super) fn read(text: &str) -> Option<Incoming> {
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    if let Some(method) = envelope.method {
        let method = method.get();
        return Some(match envelope.id {
            Some(id) if id.get().len() <= MAX_ID_BYTES => {
                Incoming::Request { id: id.get().to_owned(), is_ping: method == "\"ping\"" }
            }
            Some(_) => return None,
            None => Incoming::Notification { is_list_changed: method == "\"notifications/tools/list_changed\"" },
        });
    }
    let id = envelope.id?.get().parse().ok()?;
    let result = match (envelope.error, envelope.result) {
        (Some(error), _) => Err(refused(error.get())),
        (None, Some(result)) => Ok(result.get().into()),
        (None, None) => Err(Failure::Unreadable),
    };
    Some(Incoming::Answer(id, result))
}

/// Reads a JSON-RPC error.
pub(super) fn refused(error: &str) -> Failure {
    #[derive(Deserialize)]
    struct Refusal<'a> {
        code: i64,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let Ok(refusal) = serde_json::from_str::<Refusal<'_>>(error) else { return Failure::Unreadable };
    let message = refusal.message.and_then(|text| string(text.get())).unwrap_or_default();
    Failure::Refused { code: refusal.code, message: sentence(&message, MAX_ERROR_BYTES) }
}

/// The value of a JSON string; `None` for other JSON.
pub(super) fn string(text: &str) -> Option<String> {
    let value = json::parse_value(text, &Limits::UNBOUNDED).ok()?;
    value.as_str().map(str::to_owned)
}

/// A request of this side.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A notification of this side.
pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// The notification that nobody waits for an answer any more.
pub(super) fn cancelled(id: u64) -> String {
    notification("notifications/cancelled", &json!({"requestId": id, "reason": "the call ended"}))
}

/// The answer to a request of the server. This side offers neither sampling nor elicitation nor roots.
pub(super) fn answer(id: &str, is_ping: bool) -> String {
    if is_ping {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"not supported"}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> Option<(u64, Result<Box<str>, Failure>)> {
        match read(text)? {
            Incoming::Answer(id, result) => Some((id, result)),
            _ => None,
        }
    }

    #[test]
    fn an_envelope_is_read_whatever_is_in_it() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{}1{}}}"#, "[".repeat(3000), "]".repeat(3000));
        assert!(matches!(answered(&deep), Some((7, Ok(_)))));
        let surrogate = r#"{"result":{"a":"\ud800"},"id":3}"#;
        assert!(matches!(answered(surrogate), Some((3, Ok(text))) if &*text == r#"{"a":"\ud800"}"#));
        for text in ["", "[]", "{", "hello", r#"{"id":"7","result":1}"#, r#"{"id":-1,"result":1}"#, r#"{"id":1.5}"#] {
            assert!(read(text).is_none(), "{text}");
        }
        assert_eq!(answered(r#"{"id":1}"#), Some((1, Err(Failure::Unreadable))));
        assert_eq!(answered(r#"{"id":1,"result":null}"#), Some((1, Err(Failure::Unreadable))));
    }

    #[test]
    fn an_error_is_bounded_and_its_data_is_dropped() {
        let long = "x".repeat(100_000);
        let text = format!(r#"{{"id":1,"error":{{"code":-5,"message":"{long}","data":{{"token":"CANARY"}}}}}}"#);
        let Some((1, Err(failure))) = answered(&text) else { panic!("not refused") };
        assert!(!format!("{failure:?}").contains("CANARY"));
        let Failure::Refused { code: -5, message } = failure else { panic!("not refused") };
        assert!(message.len() <= MAX_ERROR_BYTES + 2);
    }
}
