//! History in no provider's terms: messages, the check of what a client sent, the repair of our own (E3).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::call::{CallId, Outcome, SafeError, ToolExecResult};
use crate::wire::decoded::object_text;
use crate::wire::{CallStatus, DecodedCall};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Clone, PartialEq, Eq)]
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

    /// The same call; clients write the keys of arguments in an order of their own.
    fn means(&self, other: &Self) -> bool {
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
#[derive(Clone, PartialEq, Eq)]
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
        let error = SafeError {
            error_code: Outcome::Cancelled.code(),
            tool_code: None,
            safe_message: "The call was cancelled before it had a result.".to_owned(),
            errors: Vec::new(),
        };
        let result = ToolExecResult {
            tool_call_id: id,
            ok: false,
            outcome: Outcome::Cancelled,
            value: None,
            model_value: None,
            error: Some(error),
            executed: false,
            concealed: false,
            warning: None,
        };
        Self::from(&result)
    }
}

impl From<&ToolExecResult> for ResultMessage {
    fn from(result: &ToolExecResult) -> Self {
        Self::new(result.tool_call_id.clone(), result.to_model(), !result.ok)
    }
}

// Results stay out of logs.
impl fmt::Debug for ResultMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultMessage").field("id", &self.id).field("is_error", &self.is_error).finish_non_exhaustive()
    }
}

/// A call that this side issued, as it is known here.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Issued {
    /// The call.
    pub call: CallMessage,
    /// Who answers it.
    pub answer: Answer,
}

impl Issued {
    /// A call and who answers it.
    #[must_use]
    pub const fn new(call: CallMessage, answer: Answer) -> Self {
        Self { call, answer }
    }
}

/// Who answers a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The client, once.
    Client,
    /// This side, and it has not yet.
    Pending,
    /// This side, with this result.
    Given(ResultMessage),
}

/// Why a history that a client sent is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryError {
    /// What is wrong.
    pub kind: HistoryErrorKind,
    /// The call id it concerns.
    pub id: CallId,
}

/// The kinds of [`HistoryError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryErrorKind {
    /// A result that does not follow its call.
    Orphan,
    /// A second call or a second result of one id.
    Duplicate,
    /// A call or a result that this side did not issue, or issued differently.
    Forged,
}

impl HistoryErrorKind {
    /// A stable word for each case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Orphan => "history_orphan",
            Self::Duplicate => "history_duplicate",
            Self::Forged => "history_forged",
        }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            HistoryErrorKind::Orphan => "the history holds a result that does not follow its call",
            HistoryErrorKind::Duplicate => "the history holds two calls or two results of one id",
            HistoryErrorKind::Forged => "the history holds a call or a result that was not issued here",
        })
    }
}

impl std::error::Error for HistoryError {}

/// Checks a history that a client sent against the calls that this side issued. A missing result is not an
/// error; [`repair`] answers it.
pub fn check(history: &[Message], issued: &BTreeMap<CallId, Issued>) -> Result<(), HistoryError> {
    let error = |kind, id: &CallId| Err(HistoryError { kind, id: id.clone() });
    let mut called = BTreeSet::new();
    let mut answered = BTreeSet::new();
    let mut open = BTreeSet::new();
    for message in history {
        match message {
            Message::System(_) | Message::User(_) => open.clear(),
            Message::Assistant { calls, .. } => {
                open.clear();
                for call in calls {
                    if !called.insert(&call.id) {
                        return error(HistoryErrorKind::Duplicate, &call.id);
                    }
                    if !issued.get(&call.id).is_some_and(|issued| issued.call.means(call)) {
                        return error(HistoryErrorKind::Forged, &call.id);
                    }
                    open.insert(&call.id);
                }
            }
            Message::Result(result) => {
                if !answered.insert(&result.id) {
                    return error(HistoryErrorKind::Duplicate, &result.id);
                }
                if !open.contains(&result.id) {
                    return error(HistoryErrorKind::Orphan, &result.id);
                }
                match issued.get(&result.id).map(|issued| &issued.answer) {
                    Some(Answer::Client) => {}
                    Some(Answer::Given(given)) if given.content == result.content => {}
                    _ => return error(HistoryErrorKind::Forged, &result.id),
                }
            }
        }
    }
    Ok(())
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
    let (mut in_string, mut escaped) = (false, false);
    text.chars()
        .filter(|char| {
            let keep = in_string || !char.is_ascii_whitespace();
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = in_string,
                '"' => in_string = !in_string,
                _ => {}
            }
            keep
        })
        .collect()
}
