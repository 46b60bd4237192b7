//! History in no provider's terms: messages, the check of what a client sent, the repair of our own (E3).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{CallId, Outcome, ToolExecResult};
use crate::text::lex::outside_strings;
use crate::wire::decode::object_text;
use crate::wire::{CallStatus, DecodedCall};

mod check;

pub use check::{Answer, HistoryError, HistoryErrorKind, Issued, check};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// Instructions.
    System(String),
    /// What the user wrote.
    User(String),
    /// What the model answered.
    Assistant {
        /// Its text, empty when it wrote none.
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
    /// A call with its arguments as JSON text. Text that is not one object is kept out of the history: it goes
    /// to the provider as `{}`.
    #[must_use]
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: &str) -> Self {
        let text = object_text(arguments);
        let object = text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        Self { id: id.into(), name: name.into(), arguments: object.then(|| compact(text)) }
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

    /// The same call; clients write the keys of arguments in an order of their own.
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
    /// What the model reads.
    pub content: String,
    /// The call failed.
    pub is_error: bool,
}

impl ResultMessage {
    /// A result.
    #[must_use]
    pub fn new(id: impl Into<CallId>, content: impl Into<String>, is_error: bool) -> Self {
        Self { id: id.into(), content: content.into(), is_error }
    }

    /// What stands in for a result that never came.
    #[must_use]
    pub fn cancelled(id: CallId) -> Self {
        let message = "The call was cancelled before it had a result.";
        let result = ToolExecResult::unfinished(id, Outcome::Cancelled, false, message);
        Self::from(&result)
    }
}

impl From<&ToolExecResult> for ResultMessage {
    fn from(result: &ToolExecResult) -> Self {
        Self::new(result.call_id().clone(), result.to_model(), !result.is_ok())
    }
}

// Results stay out of logs.
impl fmt::Debug for ResultMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultMessage").field("id", &self.id).field("is_error", &self.is_error).finish_non_exhaustive()
    }
}

/// Our own history made whole: each call is followed by its one result, in call order; a missing one becomes
/// `cancelled`, orphans and duplicates go.
#[must_use]
pub fn repair(history: &[Message]) -> Vec<Message> {
    let mut out = Vec::with_capacity(history.len());
    for piece in pieces(history) {
        match piece {
            Piece::System(text) => out.push(Message::System(text.to_owned())),
            Piece::User(text) => out.push(Message::User(text.to_owned())),
            Piece::Assistant { text, answered } => {
                let calls = answered.iter().map(|(call, _)| (*call).clone()).collect();
                out.push(Message::Assistant { text: text.to_owned(), calls });
                out.extend(answered.into_iter().map(|(_, result)| Message::Result(result.into_owned())));
            }
        }
    }
    out
}

/// A message together with what belongs to it. Encoders read these, so that none can part a call from its result.
pub(crate) enum Piece<'a> {
    System(&'a str),
    User(&'a str),
    Assistant { text: &'a str, answered: Vec<(&'a CallMessage, Cow<'a, ResultMessage>)> },
}

/// M1: the pieces of a history. Results belong to the assistant's message before them.
pub(crate) fn pieces(history: &[Message]) -> Vec<Piece<'_>> {
    let mut out = Vec::with_capacity(history.len());
    for (at, message) in history.iter().enumerate() {
        match message {
            Message::System(text) => out.push(Piece::System(text)),
            Message::User(text) => out.push(Piece::User(text)),
            Message::Result(_) => {}
            Message::Assistant { text, calls } => {
                let later = history.iter().skip(at + 1);
                let mut results = BTreeMap::new();
                for message in later.take_while(|message| !matches!(message, Message::Assistant { .. })) {
                    if let Message::Result(result) = message {
                        results.entry(&result.id).or_insert(result);
                    }
                }
                let mut seen = BTreeSet::new();
                let answered = calls
                    .iter()
                    .filter(|call| seen.insert(&call.id))
                    .map(|call| {
                        let result = results.get(&call.id).map(|result| Cow::Borrowed(*result));
                        (call, result.unwrap_or_else(|| Cow::Owned(ResultMessage::cancelled(call.id.clone()))))
                    })
                    .collect();
                out.push(Piece::Assistant { text, answered });
            }
        }
    }
    out
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
