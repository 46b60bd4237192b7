//! Writes JSON-RPC requests, and reads the envelope of a message without parsing its contents.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::json::{self, Limits};
use crate::mcp::source::error::RequestError;
use crate::text::sentence;

/// The longest error message that is stored, in bytes.
const MAX_ERROR_BYTES: usize = 2048;

/// The maximum length of the id of a server request, in bytes. The answer repeats the id.
const MAX_ID_BYTES: usize = 256;

/// A message of the server.
pub(super) enum Incoming {
    /// The answer to a request of this client.
    Answer(u64, Result<Box<str>, RequestError>),
    /// A request of the server, with its id as the server wrote it.
    Request { id: String, is_ping: bool },
    /// A notification.
    Notification(Notification),
}

/// The contents of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notification {
    /// The tools changed. `subscription` is the id of the subscription that reports this, in the revision that has
    /// subscriptions.
    Changed { subscription: Option<u64> },
    /// A subscription is open; `of_tools` is true if it reports changes of the tools.
    Acknowledged { subscription: Option<u64>, of_tools: bool },
    /// The server ended the subscription that this request opened.
    Cancelled { request: Option<u64> },
    /// Any other notification.
    Other,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Reads a message. `None` if the text is not a message. The contents are not parsed here, so that an invalid part,
/// such as half a surrogate pair, does not make the whole message unreadable.
pub(super) fn read(text: &str) -> Option<Incoming> {
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    if let Some(method) = envelope.method {
        let method = method.get();
        return Some(match envelope.id {
            Some(id) if id.get().len() <= MAX_ID_BYTES => {
                Incoming::Request { id: id.get().to_owned(), is_ping: method == "\"ping\"" }
            }
            Some(_) => return None,
            None => Incoming::Notification(read_notification(method, envelope.params.map_or("{}", RawValue::get))),
        });
    }
    let id = envelope.id?.get().parse().ok()?;
    let result = match (envelope.error, envelope.result) {
        (Some(error), _) => Err(refused(error.get())),
        (None, Some(result)) => Ok(result.get().into()),
        (None, None) => Err(RequestError::Unreadable),
    };
    Some(Incoming::Answer(id, result))
}

/// Reads a notification. A notification with unreadable parameters gets the subscription 0, which is never open.
fn read_notification(method: &str, params: &str) -> Notification {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<Meta<'a>>,
        #[serde(borrow)]
        request_id: Option<&'a RawValue>,
        #[serde(borrow)]
        notifications: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
        subscription: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Filter {
        tools_list_changed: bool,
    }
    // Requests of this client have numbers from 1; 0 matches none of them.
    let number = |id: &RawValue| id.get().parse().unwrap_or(0);
    let read = || serde_json::from_str::<Params<'_>>(params).ok();
    let subscription = |params: &Option<Params<'_>>| match params {
        Some(params) => params.meta.as_ref().and_then(|meta| meta.subscription).map(number),
        None => Some(0),
    };
    match method {
        "\"notifications/tools/list_changed\"" => Notification::Changed { subscription: subscription(&read()) },
        "\"notifications/subscriptions/acknowledged\"" => {
            let params = read();
            let filter = params.as_ref().and_then(|params| params.notifications).map_or("{}", RawValue::get);
            let of_tools = serde_json::from_str::<Filter>(filter).is_ok_and(|filter| filter.tools_list_changed);
            Notification::Acknowledged { subscription: subscription(&params), of_tools }
        }
        "\"notifications/cancelled\"" => {
            Notification::Cancelled { request: read().and_then(|params| params.request_id).map(number) }
        }
        _ => Notification::Other,
    }
}

/// Returns the message of a JSON-RPC error with any id or none, because some servers write `"id":null`.
pub(super) fn reason(text: &str) -> Option<String> {
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    refused(envelope.error?.get()).message().map(str::to_owned)
}

/// Reads a JSON-RPC error.
pub(super) fn refused(error: &str) -> RequestError {
    #[derive(Deserialize)]
    struct JsonRpcError<'a> {
        code: i64,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let Ok(refusal) = serde_json::from_str::<JsonRpcError<'_>>(error) else { return RequestError::Unreadable };
    let message = refusal.message.and_then(|text| string(text.get())).unwrap_or_default();
    RequestError::Refused { code: refusal.code, message: sentence(&message, MAX_ERROR_BYTES) }
}

/// Reads a list. `null` is read as an empty list, because servers in Go write it in this way.
pub(super) fn list<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<&'de RawValue>, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Returns the value of a JSON string; `None` for other JSON.
pub(super) fn string(text: &str) -> Option<String> {
    let value = json::parse_value(text, &Limits::UNBOUNDED).ok()?;
    value.as_str().map(str::to_owned)
}

/// Writes a request of this client.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// Writes a notification of this client.
pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// Writes the notification that cancels a request.
pub(super) fn cancelled(id: u64) -> String {
    notification("notifications/cancelled", &json!({"requestId": id, "reason": "the call ended"}))
}

/// Writes the answer to a request of the server. This client offers neither sampling nor elicitation nor roots.
pub(super) fn answer(id: &str, is_ping: bool) -> String {
    if is_ping {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"not supported"}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> Option<(u64, Result<Box<str>, RequestError>)> {
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
        assert_eq!(answered(r#"{"id":1}"#), Some((1, Err(RequestError::Unreadable))));
        assert_eq!(answered(r#"{"id":1,"result":null}"#), Some((1, Err(RequestError::Unreadable))));
    }

    #[test]
    fn a_notification_says_what_it_belongs_to() {
        let notification = |text: &str| match read(text) {
            Some(Incoming::Notification(notification)) => notification,
            _ => panic!("{text}"),
        };
        let meta = r#""_meta":{"io.modelcontextprotocol/subscriptionId":7,"x":"\ud800"}"#;
        let changed = r#"{"method":"notifications/tools/list_changed""#;
        for (text, expected) in [
            (format!("{changed}}}"), Notification::Changed { subscription: None }),
            (format!("{changed},\"params\":{{}}}}"), Notification::Changed { subscription: None }),
            (format!("{changed},\"params\":{{{meta}}}}}"), Notification::Changed { subscription: Some(7) }),
            (format!("{changed},\"params\":[]}}"), Notification::Changed { subscription: Some(0) }),
            (
                format!("{changed},\"params\":{{{}}}}}", meta.replace('7', "\"7\"")),
                Notification::Changed { subscription: Some(0) },
            ),
            (
                format!(
                    r#"{{"method":"notifications/subscriptions/acknowledged","params":{{{meta},"notifications":{{"toolsListChanged":true}}}}}}"#
                ),
                Notification::Acknowledged { subscription: Some(7), of_tools: true },
            ),
            (
                format!(
                    r#"{{"method":"notifications/subscriptions/acknowledged","params":{{{meta},"notifications":7}}}}"#
                ),
                Notification::Acknowledged { subscription: Some(7), of_tools: false },
            ),
            (
                r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#.to_owned(),
                Notification::Cancelled { request: Some(7) },
            ),
            (r#"{"method":"notifications/cancelled"}"#.to_owned(), Notification::Cancelled { request: None }),
            (r#"{"method":"notifications/progress","params":{"progress":1}}"#.to_owned(), Notification::Other),
        ] {
            assert_eq!(notification(&text), expected, "{text}");
        }
    }

    #[test]
    fn an_error_is_bounded_and_its_data_is_dropped() {
        let long = "x".repeat(100_000);
        let text = format!(r#"{{"id":1,"error":{{"code":-5,"message":"{long}","data":{{"token":"CANARY"}}}}}}"#);
        let Some((1, Err(failure))) = answered(&text) else { panic!("not refused") };
        assert!(!format!("{failure:?}").contains("CANARY"));
        let RequestError::Refused { code: -5, message } = failure else { panic!("not refused") };
        assert!(message.len() <= MAX_ERROR_BYTES + 2);
    }
}
