//! [`Decoded`]: the decoded response.

use std::fmt;

use serde::de::IgnoredAny;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::call::{Arguments, ToolCall};
use crate::json::{self, Limits, ParseErrorKind};
use crate::wire::decode::turn::Layout;
use crate::wire::history::{CallMessage, Part, object_text};
use crate::wire::{Usage, WireError};

/// A decoded response. Serialises to `{calls, text, finish, provider_finish, error, refusal?, usage?}`.
///
/// ```
/// use tool_runtime::wire::{FinishReason, Format, Message};
///
/// let mut decoder = Format::OpenAiChat.decoder();
/// decoder.push(br#"{"choices":[{"finish_reason":"tool_calls","message":{"content":"Let me see.","tool_calls":[
///     {"id":"call_1","type":"function","function":{"name":"core__add","arguments":"{\"a\":1}"}}]}}]}"#);
/// let decoded = decoder.finish();
/// assert!(decoded.ended_well());
/// assert_eq!((decoded.text.as_str(), decoded.finish), ("Let me see.", FinishReason::ToolCalls));
/// assert_eq!(decoded.calls[0].call.name, "core__add");
/// let turn = Message::Assistant(decoded.parts());
/// assert_eq!(turn.calls().count(), 1);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Decoded {
    /// The calls, in the order in which they began.
    pub calls: Vec<DecodedCall>,
    /// The text of the model.
    pub text: String,
    /// How the turn ended. The error `unsupported_item` does not change this value, so [`ended_well`](Self::ended_well)
    /// decides whether calls may run.
    pub finish: FinishReason,
    /// The provider's own finish reason; `None` if it sent none.
    pub provider_finish: Option<String>,
    /// Why the response failed; `None` if it did not.
    pub error: Option<WireError>,
    /// The text with which the model refused; `None` if it did not refuse.
    pub refusal: Option<String>,
    /// The counted tokens; `None` if the provider did not count them.
    pub usage: Option<Usage>,
    /// The id that the provider gave the response; `None` if it gave none.
    pub response_id: Option<String>,
    /// The model that the response names; `None` if it names none.
    pub model: Option<String>,
    pub(super) layout: Layout,
    /// The number of bytes of the response that are in none of its parts.
    pub(super) unkept: usize,
}

impl Decoded {
    /// Creates a turn of these parts, for models that need no decoder. The calls may run if `finish` is
    /// [`ToolCalls`](FinishReason::ToolCalls) or [`Stop`](FinishReason::Stop).
    ///
    /// ```
    /// use tool_runtime::wire::history::{CallMessage, Part};
    /// use tool_runtime::wire::{Decoded, FinishReason};
    ///
    /// let call = CallMessage::new("call_1", "core__add", r#"{"a":1,"b":2}"#);
    /// let decoded = Decoded::new(&[Part::text("Let me see."), Part::Call(call)], FinishReason::ToolCalls);
    /// assert!(decoded.calls[0].is_executable());
    /// ```
    #[must_use]
    pub fn new(parts: &[Part], finish: FinishReason) -> Self {
        let ends_well = matches!(finish, FinishReason::ToolCalls | FinishReason::Stop);
        let call = |call: &CallMessage| {
            let mut tool_call = ToolCall::text(call.id.clone(), call.name.clone(), call.arguments());
            if !ends_well {
                tool_call = tool_call.incomplete();
            }
            if let Some(provider_state) = call.provider_state() {
                tool_call.set_raw(provider_state.shared());
            }
            DecodedCall { call: tool_call, status: CallStatus::Ok, offered: true }
        };
        let refusal: String = parts
            .iter()
            .filter_map(|part| if let Part::Refusal(text) = part { Some(text.as_str()) } else { None })
            .collect();
        Self {
            calls: parts.iter().filter_map(Part::as_call).map(call).collect(),
            text: parts
                .iter()
                .filter_map(|part| if let Part::Text { text, .. } = part { Some(text.as_str()) } else { None })
                .collect(),
            finish,
            provider_finish: None,
            error: None,
            refusal: (!refusal.is_empty()).then_some(refusal),
            usage: None,
            response_id: None,
            model: None,
            layout: Layout::given(parts),
            unkept: 0,
        }
    }

    /// Returns the parts of the turn in order, for the history, including provider state.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let call = |at: usize| self.calls.get(at).map(CallMessage::from);
        self.layout.parts(&self.text, call, self.refusal.as_deref().unwrap_or_default())
    }

    /// The number of bytes of the response that are in none of its parts.
    pub(crate) const fn unkept(&self) -> usize {
        self.unkept
    }

    /// Returns whether the turn ended well, so that its executable calls may run.
    #[must_use]
    pub fn ended_well(&self) -> bool {
        self.error.is_none() && matches!(self.finish, FinishReason::ToolCalls | FinishReason::Stop)
    }

    /// Returns whether the turn ended well but has no text, call or refusal to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ended_well() && self.calls.is_empty() && self.text.trim().is_empty() && self.refusal.is_none()
    }
}

// Text, reasoning and provider state stay out of logs.
impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded")
            .field("calls", &self.calls)
            .field("text_bytes", &self.text.len())
            .field("finish", &self.finish)
            .field("error", &self.error)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

impl Serialize for Decoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usage = self.usage.as_ref().and_then(Usage::shown);
        let fields = 5 + usize::from(self.refusal.is_some()) + usize::from(usage.is_some());
        let mut out = serializer.serialize_struct("Decoded", fields)?;
        out.serialize_field("calls", &self.calls)?;
        out.serialize_field("text", &self.text)?;
        out.serialize_field("finish", &self.finish)?;
        out.serialize_field("provider_finish", &self.provider_finish)?;
        out.serialize_field("error", &self.error)?;
        if let Some(refusal) = &self.refusal {
            out.serialize_field("refusal", refusal)?;
        }
        if let Some(usage) = &usage {
            out.serialize_field("usage", usage)?;
        }
        out.end()
    }
}

/// One decoded call. Serialises to `{id, id_source, name, arguments_raw?, arguments?, status, executable}`.
///
/// ```
/// use tool_runtime::wire::Format;
///
/// let mut decoder = Format::OpenAiChat.decoder();
/// decoder.push(br#"{"id":"chatcmpl-1","choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[
///     {"id":"call_1","type":"function","function":{"name":"core__add","arguments":"{\"a\":1"}}]}}]}"#);
/// let decoded = decoder.finish().calls.remove(0);
/// assert_eq!((decoded.status(), decoded.is_executable()), ("invalid_json", false));
/// assert_eq!(decoded.call.provider.as_deref(), Some("openai_chat"));
/// assert_eq!(decoded.call.response_id.as_deref(), Some("chatcmpl-1"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecodedCall {
    /// The call, in the form that the runner takes.
    pub call: ToolCall,
    pub(crate) status: CallStatus,
    /// Whether the request offered a tool of this name; `true` if the decoder does not know the offered names.
    pub offered: bool,
}

impl DecodedCall {
    /// Returns whether the call may run: its name and arguments can be read, and its turn ended well.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.status == CallStatus::Ok && self.call.is_complete()
    }

    /// Returns whether the name and the arguments can be read: `ok`; `invalid_json` for text that the runner cannot
    /// parse, for example because an object repeats a property; `arguments_not_object` for other JSON types;
    /// `truncated_arguments` if the text is not JSON and the turn broke off; or `missing_name`.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self.status {
            CallStatus::Ok => "ok",
            CallStatus::InvalidJson => "invalid_json",
            CallStatus::ArgumentsNotObject => "arguments_not_object",
            CallStatus::TruncatedArguments => "truncated_arguments",
            CallStatus::MissingName => "missing_name",
        }
    }

    /// Replaces the arguments by a string, for models that need no decoder. The [status](Self::status) becomes that of
    /// the string.
    ///
    /// ```
    /// use tool_runtime::wire::history::{CallMessage, Part};
    /// use tool_runtime::wire::{Decoded, FinishReason};
    ///
    /// let call = CallMessage::new("call_1", "core__add", "{}");
    /// let mut decoded = Decoded::new(&[Part::Call(call)], FinishReason::ToolCalls);
    /// decoded.calls[0].set_arguments("[1,2]");
    /// assert_eq!((decoded.calls[0].status(), decoded.calls[0].is_executable()), ("arguments_not_object", false));
    /// ```
    pub fn set_arguments(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.status = CallStatus::of_arguments(&text, true);
        self.call.arguments = Arguments::Text(text.into());
    }
}

impl From<&DecodedCall> for CallMessage {
    fn from(decoded: &DecodedCall) -> Self {
        let call = &decoded.call;
        let message = Self::new(call.id.clone(), call.name.clone(), call.arguments());
        if decoded.status == CallStatus::Ok { message } else { message.without_arguments() }
    }
}

impl Serialize for DecodedCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = matches!(self.call.arguments, Arguments::Text(_));
        let read = self.status == CallStatus::Ok;
        let mut out = serializer.serialize_struct("DecodedCall", 5 + usize::from(raw) + usize::from(read))?;
        out.serialize_field("id", &self.call.id)?;
        out.serialize_field("id_source", &self.call.id_source)?;
        out.serialize_field("name", &self.call.name)?;
        if raw {
            out.serialize_field("arguments_raw", self.call.arguments())?;
        }
        if read {
            let text = object_text(self.call.arguments());
            let value = serde_json::from_str::<&RawValue>(text).map_err(serde::ser::Error::custom)?;
            out.serialize_field("arguments", value)?;
        }
        out.serialize_field("status", &self.status)?;
        out.serialize_field("executable", &self.is_executable())?;
        out.end()
    }
}

/// Whether a call's name and arguments can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallStatus {
    /// A name and one JSON object.
    Ok,
    /// The runner cannot parse the arguments: the text is not JSON, an object repeats a property, or a string contains
    /// half a surrogate pair.
    InvalidJson,
    /// The arguments are JSON, but not an object.
    ArgumentsNotObject,
    /// The arguments are not JSON and the turn broke off.
    TruncatedArguments,
    /// The call has no name.
    MissingName,
}

impl CallStatus {
    /// The status of argument text (rule R8 of `wire`): it must be empty or one JSON object that the runner can parse.
    /// The runner checks length, depth and the size of numbers, because its error messages help the model more.
    pub(crate) fn of_arguments(text: &str, clean: bool) -> Self {
        let text = object_text(text);
        let kind = match json::parse(text, &Limits::UNBOUNDED) {
            Ok(_) => return Self::Ok,
            Err(error) => error.kind,
        };
        let beyond = matches!(kind, ParseErrorKind::IntegerRange | ParseErrorKind::NotFinite) || kind.is_limit();
        // Checks only the syntax, without recursion.
        let reads = || serde_json::from_str::<IgnoredAny>(text).is_ok();
        match kind {
            ParseErrorKind::NotAnObject => Self::ArgumentsNotObject,
            _ if beyond && reads() && text.starts_with('{') => Self::Ok,
            _ if beyond && reads() => Self::ArgumentsNotObject,
            _ if clean => Self::InvalidJson,
            _ => Self::TruncatedArguments,
        }
    }
}

/// The end of a model's turn.
///
/// [`Decoded`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The turn ended well, with calls.
    ToolCalls,
    /// The turn ended well, without calls.
    Stop,
    /// The turn reached its output limit.
    Length,
    /// A filter of the provider ended the turn.
    ContentFilter,
    /// The model refused to answer.
    Refusal,
    /// The provider paused the turn; the next request must contain it.
    Pause,
    /// The response failed; [`Decoded::error`] has the reason.
    Error,
    /// The bytes ended before the turn did.
    Truncated,
}
