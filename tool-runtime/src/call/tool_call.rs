//! [`ToolCall`]: a model's call as a decoder assembled it, before any validation.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::CallId;
use crate::text::cut;

/// The length to which records and events cut the name of a tool, in bytes. They keep call ids up to this length even
/// if the policy's limit is lower.
pub(crate) const SHOWN_BYTES: usize = 128;

/// Returns a name that a model wrote, cut at a character boundary for records and events.
pub(crate) fn shown(name: &str) -> String {
    cut(name, SHOWN_BYTES).to_owned()
}

/// The source of a call's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IdSource {
    /// The provider sent it.
    Provider,
    /// This library made it, because the provider sent no usable id.
    Generated,
}

/// The arguments exactly as they arrived, as JSON text. `Debug` does not show them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Arguments {
    /// The provider sent a string that should contain JSON.
    Text(Arc<str>),
    /// The provider sent a JSON object. This is its text, unchanged.
    Object(Arc<str>),
}

impl Arguments {
    /// Returns the JSON text, which has not been checked.
    pub(crate) const fn text(&self) -> &Arc<str> {
        match self {
            Self::Text(text) | Self::Object(text) => text,
        }
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text(..)",
            Self::Object(_) => "Object(..)",
        })
    }
}

/// One call that a model made.
///
/// ```
/// use tool_runtime::ToolCall;
///
/// // Most providers send a string that contains JSON, some an object.
/// let call = ToolCall::text("call_1", "core__add", r#"{"a":1,"b":2}"#);
/// assert_eq!((call.arguments(), call.is_complete()), (r#"{"a":1,"b":2}"#, true));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id of the call, the same from its start to its result.
    pub id: CallId,
    /// The source of the id.
    pub(crate) id_source: IdSource,
    /// The name as the model wrote it; empty if it wrote none.
    pub name: String,
    pub(crate) arguments: Arguments,
    complete: bool,
    /// Whether the call is outside the `tool_choice` that the request forced.
    pub outside_choice: bool,
    /// The wire format of the response, for example `openai_chat`; `None` if no decoder read the call.
    pub provider: Option<Cow<'static, str>>,
    /// The provider's id of the call; `None` if it sent none.
    pub provider_call_id: Option<String>,
    /// The provider's id of the response; `None` if it sent none.
    pub response_id: Option<String>,
    /// The frame (the event or the line of the stream) in which the call began, from 0; `None` if no decoder read the
    /// call.
    pub frame: Option<usize>,
    /// The provider's own JSON for the call. It is never serialized, so no document contains it.
    #[serde(skip)]
    raw: Raw,
}

/// JSON text as a provider sent it. `Debug` does not show it.
#[derive(Clone, Default, PartialEq, Eq)]
struct Raw(Option<Arc<str>>);

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// The JSON text of a call's arguments. As a trait, it lets the compiler explain how to pass a `serde_json::Value`.
#[diagnostic::on_unimplemented(
    message = "the arguments of a call are JSON text, which this type is not",
    label = "not text",
    note = "write `.to_string()` behind a `json!({{..}})`"
)]
pub trait ArgumentText: AsRef<str> {}

#[diagnostic::do_not_recommend]
impl<T: AsRef<str>> ArgumentText for T {}

impl ToolCall {
    /// Creates a [complete](Self::is_complete) call whose arguments arrived as text.
    #[must_use]
    pub fn text(id: impl Into<CallId>, name: impl Into<String>, arguments: impl ArgumentText) -> Self {
        Self::new(id.into(), name.into(), Arguments::Text(arguments.as_ref().into()))
    }

    /// Creates a [complete](Self::is_complete) call whose arguments arrived as an object. `arguments` is the JSON text
    /// of the object.
    #[must_use]
    pub fn object(id: impl Into<CallId>, name: impl Into<String>, arguments: impl ArgumentText) -> Self {
        Self::new(id.into(), name.into(), Arguments::Object(arguments.as_ref().into()))
    }

    /// Marks the call as incomplete: its turn was cut off or failed. It never runs, and the mark cannot be removed.
    #[must_use]
    pub fn incomplete(mut self) -> Self {
        self.complete = false;
        self
    }

    /// Returns the JSON text of the arguments exactly as they arrived, unchecked.
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.arguments.text()
    }

    /// Whether the provider made the id. Otherwise the provider sent no usable id, and this library made it.
    #[must_use]
    pub fn has_provider_id(&self) -> bool {
        self.id_source == IdSource::Provider
    }

    /// Whether the turn of the call was neither cut off nor failed.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    pub(crate) fn new(id: CallId, name: String, arguments: Arguments) -> Self {
        Self {
            id,
            id_source: IdSource::Provider,
            name,
            arguments,
            complete: true,
            outside_choice: false,
            provider: None,
            provider_call_id: None,
            response_id: None,
            frame: None,
            raw: Raw::default(),
        }
    }

    /// Sets the provider's own JSON for the call.
    pub(crate) fn set_raw(&mut self, json: &Arc<str>) {
        self.raw = Raw(Some(Arc::clone(json)));
    }

    /// Returns the provider's own JSON for the call; `None` if the provider sent no more than the call, or the call was
    /// restored.
    pub(crate) const fn raw(&self) -> Option<&Arc<str>> {
        self.raw.0.as_ref()
    }
}
