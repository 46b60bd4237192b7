//! Conversations independent of a provider: messages, the check of a client's history, the repair of this side's.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{CallId, Outcome, ToolExecResult};
use crate::json;
use crate::text::lex::outside_strings;
use crate::wire::decode::object_text;
use crate::wire::{CallStatus, DecodedCall};

mod check;
mod repair;

pub use check::{Answer, HistoryError, HistoryErrorKind, HistoryLimits, Issued, check};
pub use repair::{Missing, repair};
pub(crate) use repair::{Piece, pieces};

/// One message of a conversation, independent of a provider.
///
/// ```
/// use tool_runtime::wire::{Format, Message};
/// use tool_runtime::wire::history::{CallMessage, ResultMessage};
///
/// let history = [
///     Message::User("What is 1 + 2?".to_owned()),
///     Message::Assistant {
///         text: String::new(),
///         calls: vec![CallMessage::new("call_1", "core__add", r#"{"a":1,"b":2}"#)],
///     },
///     Message::Result(ResultMessage::new("call_1", "3")),
/// ];
/// let body = Format::OpenAiChat.encode_messages(&history);
/// assert_eq!(body["messages"][2]["role"], "tool");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// Instructions.
    System(String),
    /// What the user wrote.
    User(String),
    /// The model's answer.
    Assistant {
        /// Its text; empty if it wrote none.
        text: String,
        /// Its calls, in order.
        calls: Vec<CallMessage>,
    },
    /// The result of one call.
    Result(ResultMessage),
}

/// A call in a history.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CallMessage {
    /// The id of the call.
    pub id: CallId,
    /// The name as the model wrote it.
    pub name: String,
    arguments: Option<String>,
}

impl CallMessage {
    /// A call with its arguments as JSON text.
    ///
    /// Arguments that the gate cannot read (no object, half a surrogate pair, a key twice, nested more than
    /// 64 levels deep) are left out: every format sends `{}` in their place, because servers that parse them
    /// would refuse the whole conversation.
    #[must_use]
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: &str) -> Self {
        let text = object_text(arguments);
        let limits = json::Limits { bytes: usize::MAX, ..json::Limits::default() };
        let is_readable = json::parse(text, &limits).is_ok();
        Self { id: id.into(), name: name.into(), arguments: is_readable.then(|| compact(text)) }
    }

    /// The arguments as compact JSON text, digit for digit; `{}` when they did not parse (M1).
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.arguments.as_deref().unwrap_or("{}")
    }

    /// The arguments as a value, for formats that carry an object.
    pub(crate) fn arguments_value(&self) -> serde_json::Value {
        serde_json::from_str(self.arguments()).unwrap_or_else(|_| serde_json::Value::Object(serde_json::Map::new()))
    }

    /// Whether both are the same call; clients write the keys of arguments in their own order.
    pub(super) fn means(&self, other: &Self) -> bool {
        let value = |call: &Self| serde_json::from_str::<serde_json::Value>(call.arguments()).ok();
        self == other || (self.id == other.id && self.name == other.name && value(self) == value(other))
    }
}

impl From<&DecodedCall> for CallMessage {
    fn from(decoded: &DecodedCall) -> Self {
        let call = &decoded.call;
        let arguments = if decoded.status == CallStatus::Ok { call.arguments.as_str() } else { "" };
        Self::new(call.id.clone(), call.name.clone(), arguments)
    }
}

// Arguments stay out of logs.
impl fmt::Debug for CallMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallMessage").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The result of a call in a history.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResultMessage {
    /// The call.
    pub id: CallId,
    /// The text that the model reads.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ResultMessage {
    /// The result of a call that went well.
    #[must_use]
    pub fn new(id: impl Into<CallId>, content: impl Into<String>) -> Self {
        Self { id: id.into(), content: content.into(), is_error: false }
    }

    /// The result of a call that failed.
    #[must_use]
    pub fn failed(id: impl Into<CallId>, content: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::new(id, content) }
    }

    /// The result that takes the place of one that never came.
    #[must_use]
    pub fn missing(id: CallId, missing: Missing) -> Self {
        let (outcome, message) = match missing {
            Missing::Cancelled => (Outcome::Cancelled, "The call was cancelled before it had a result."),
            Missing::OutcomeUnknown => (Outcome::OutcomeUnknown, Outcome::OutcomeUnknown.safe_message()),
        };
        let executed = missing == Missing::OutcomeUnknown;
        let result = ToolExecResult::unfinished(id, outcome, executed, message);
        Self::from(&result)
    }
}

impl From<&ToolExecResult> for ResultMessage {
    fn from(result: &ToolExecResult) -> Self {
        let message = Self::new(result.call_id().clone(), result.to_model());
        Self { is_error: !result.is_ok(), ..message }
    }
}

// Results stay out of logs.
impl fmt::Debug for ResultMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultMessage").field("id", &self.id).field("is_error", &self.is_error).finish_non_exhaustive()
    }
}

/// Valid JSON text without the white space between its tokens; everything else stays digit for digit.
fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, _) in outside_strings(text).filter(|(_, byte)| byte.is_ascii_whitespace()) {
        out.push_str(text.get(copied..at).unwrap_or_default());
        copied = at + 1;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}
