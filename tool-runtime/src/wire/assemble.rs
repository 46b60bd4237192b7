//! What all decoders share: deltas become calls, and a turn's end decides what of them may run.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::call::{Arguments, CallId, IdSource, Origin, ToolCall};

/// One piece of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Delta<'d> {
    pub(super) index: Option<i64>,
    pub(super) id: Option<&'d str>,
    pub(super) name: Option<&'d str>,
}

/// A call while it is assembled.
#[derive(Debug, Default)]
struct Building {
    id: Option<String>,
    name: String,
    text: String,
    object: Option<String>,
    frame: usize,
}

impl Building {
    fn has_arguments(&self) -> bool {
        !self.text.is_empty() || self.object.is_some()
    }
}

/// Assembles calls, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    calls: Vec<Building>,
    by_index: HashMap<i64, usize>,
    by_id: HashMap<String, usize>,
    last: Option<usize>,
}

impl Assembler {
    /// Finds the call of a delta (R1), takes its id (R2) and its name (R3). Returns the call's place and whether its
    /// name was not known before.
    pub(super) fn touch(&mut self, delta: Delta<'_>, frame: usize) -> (usize, bool) {
        // R2: an empty id or name is absent.
        let id = delta.id.filter(|id| !id.is_empty());
        let name = delta.name.filter(|name| !name.is_empty());
        let at = match self.find(delta.index, id, name) {
            Some(at) if !self.is_another(at, id, name) => at,
            _ => self.begin(delta.index, frame),
        };
        self.last = Some(at);
        if let Some(index) = delta.index {
            self.by_index.entry(index).or_insert(at);
        }
        let call = &mut self.calls[at];
        if let Some(id) = id.filter(|_| call.id.is_none()) {
            call.id = Some(id.to_owned());
            self.by_id.entry(id.to_owned()).or_insert(at);
        }
        let unnamed = call.name.is_empty();
        // R3: the same name again is a repeat; a different one before any argument text goes on with it.
        if let Some(name) = name.filter(|name| call.name != *name) {
            call.name.push_str(name);
        }
        (at, unnamed && !call.name.is_empty())
    }

    /// R1: the call that a delta belongs to; nothing when it begins one.
    fn find(&self, index: Option<i64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        if let Some(id) = id {
            match (self.by_id.get(id), name) {
                (Some(at), None) => return Some(*at),
                (Some(at), Some(name)) if self.calls[*at].name == name => return Some(*at),
                (None, Some(_)) => return None,
                _ => {}
            }
        }
        match index {
            Some(index) => match self.by_index.get(&index) {
                Some(at) => Some(*at),
                None if id.is_some() || name.is_some() => None,
                None => self.last,
            },
            None if name.is_some() => self.last.filter(|at| self.calls[*at].name.is_empty()),
            None => self.last,
        }
    }

    /// R3: a name that differs after argument text belongs to the next call.
    fn is_another(&self, at: usize, id: Option<&str>, name: Option<&str>) -> bool {
        let call = &self.calls[at];
        let fresh = id.is_none_or(|id| call.id.as_deref() == Some(id));
        fresh && call.has_arguments() && !call.name.is_empty() && name.is_some_and(|name| name != call.name)
    }

    /// Begins a call; its index, if it has one, means this call from now on.
    pub(super) fn begin(&mut self, index: Option<i64>, frame: usize) -> usize {
        let at = self.calls.len();
        self.calls.push(Building { frame, ..Building::default() });
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        self.last = Some(at);
        at
    }

    /// A whole call, from a body that was not streamed.
    pub(super) fn whole(&mut self, id: Option<&str>, name: Option<&str>, frame: usize) -> usize {
        let at = self.begin(None, frame);
        self.calls[at].id = id.filter(|id| !id.is_empty()).map(ToOwned::to_owned);
        self.calls[at].name = name.unwrap_or_default().to_owned();
        at
    }

    pub(super) fn text(&mut self, at: usize, text: &str) {
        self.calls[at].text.push_str(text);
    }

    /// R7: arguments that are an object are taken as they are.
    pub(super) fn object(&mut self, at: usize, object: &str) {
        self.calls[at].object = Some(object.to_owned());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Ends the turn. `clean` says whether it ended well; if not, nothing is executable (R10).
    pub(super) fn finish(self, clean: bool, provider: &'static str, response_id: Option<&str>) -> Vec<DecodedCall> {
        let mut taken = HashSet::new();
        let finished = self.calls.into_iter().map(|call| {
            // R4: no usable id, or one that another call has: a fresh one.
            let provided = call.id.as_deref().filter(|id| taken.insert((*id).to_owned())).map(CallId::from);
            let id_source = if provided.is_some() { IdSource::Provider } else { IdSource::Generated };
            let arguments = match call.object {
                Some(object) => Arguments::Object(object),
                None => Arguments::Text(call.text),
            };
            let status = status(&call.name, &arguments, clean);
            let mut tool_call = ToolCall::new(provided.unwrap_or_else(CallId::generate), call.name, arguments);
            tool_call.id_source = id_source;
            tool_call.complete = clean;
            tool_call.origin = Origin {
                provider: Some(provider),
                provider_call_id: call.id,
                response_id: response_id.map(ToOwned::to_owned),
                frame: Some(call.frame),
            };
            DecodedCall { call: tool_call, status, executable: clean && status == CallStatus::Ok }
        });
        finished.collect()
    }
}

/// R8: one JSON object after trimming white space; nothing at all means `{}`. Nothing is repaired.
fn status(name: &str, arguments: &Arguments, clean: bool) -> CallStatus {
    let text = trimmed(arguments);
    let parsed = serde_json::from_str::<&RawValue>(text);
    match parsed {
        Err(_) if clean => CallStatus::InvalidJson,
        Err(_) => CallStatus::TruncatedArguments,
        Ok(_) if name.is_empty() => CallStatus::MissingName,
        Ok(_) if !text.starts_with('{') => CallStatus::ArgumentsNotObject,
        Ok(_) => CallStatus::Ok,
    }
}

fn trimmed(arguments: &Arguments) -> &str {
    match arguments.as_str().trim() {
        "" => "{}",
        text => text,
    }
}

/// A call as it was decoded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecodedCall {
    /// The call.
    pub call: ToolCall,
    /// What its arguments are.
    pub status: CallStatus,
    /// It may run: its arguments are one object and the turn ended well.
    pub executable: bool,
}

impl Serialize for DecodedCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let id = (self.call.id_source == IdSource::Provider).then_some(&self.call.id);
        map.serialize_entry("id", &id)?;
        map.serialize_entry("id_source", &self.call.id_source)?;
        map.serialize_entry("name", &self.call.name)?;
        if let Arguments::Text(text) = &self.call.arguments {
            map.serialize_entry("arguments_raw", text)?;
        }
        if self.status == CallStatus::Ok
            && let Ok(arguments) = serde_json::from_str::<&RawValue>(trimmed(&self.call.arguments))
        {
            map.serialize_entry("arguments", arguments)?;
        }
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("executable", &self.executable)?;
        map.end()
    }
}

/// What the arguments of a decoded call are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// One JSON object.
    Ok,
    /// Not JSON.
    InvalidJson,
    /// JSON of another type.
    ArgumentsNotObject,
    /// The turn was cut and the text with it.
    TruncatedArguments,
    /// No name came.
    MissingName,
}

impl CallStatus {
    /// The word used in listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::InvalidJson => "invalid_json",
            Self::ArgumentsNotObject => "arguments_not_object",
            Self::TruncatedArguments => "truncated_arguments",
            Self::MissingName => "missing_name",
        }
    }
}

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// Well, with calls.
    ToolCalls,
    /// Well, without calls.
    Stop,
    /// The output limit cut it.
    Length,
    /// A filter cut it.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider paused it.
    Pause,
    /// Something failed.
    Error,
    /// The bytes ended too early.
    Truncated,
}

impl Finish {
    /// The word used in listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolCalls => "tool_calls",
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Pause => "pause",
            Self::Error => "error",
            Self::Truncated => "truncated",
        }
    }

    /// The turn ended as the model meant it to.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(self, Self::ToolCalls | Self::Stop | Self::Refusal)
    }
}

/// What went wrong with a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecodeError {
    /// The provider said so.
    ProviderError {
        /// In the provider's words.
        message: String,
        /// The provider's code, as it wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<serde_json::Value>,
    },
    /// The bytes ended before the turn did.
    TruncatedStream,
    /// A frame is not JSON, not UTF-8, or too large.
    MalformedFrame,
    /// The frames contradict the protocol.
    ProtocolViolation,
}

impl DecodeError {
    /// The stable word.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ProviderError { .. } => "provider_error",
            Self::TruncatedStream => "truncated_stream",
            Self::MalformedFrame => "malformed_frame",
            Self::ProtocolViolation => "protocol_violation",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProviderError { message, .. } => write!(f, "the provider answered with an error: {message}"),
            Self::TruncatedStream => f.write_str("the response ended too early"),
            Self::MalformedFrame => f.write_str("the response holds a frame that is not JSON"),
            Self::ProtocolViolation => f.write_str("the response contradicts its own protocol"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// What the model consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// A whole response, decoded.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Decoded {
    /// The calls, in the order of their first appearance.
    pub calls: Vec<DecodedCall>,
    /// The text.
    pub text: String,
    /// Why the turn is over.
    pub finish: Finish,
    /// The provider's own word for it.
    pub provider_finish: Option<String>,
    /// What went wrong.
    pub error: Option<DecodeError>,
    /// The words of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// What the model consumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The provider's id of the response.
    #[serde(skip)]
    pub response_id: Option<String>,
}

/// For display only, while a response comes in. Nothing runs from these.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisplayEvent {
    /// Text.
    Text(String),
    /// A call's name is known. Names may still grow.
    CallStarted {
        /// The call's place among the calls.
        call: usize,
        /// The name so far.
        name: String,
    },
    /// Argument text.
    ArgumentDelta {
        /// The call's place among the calls.
        call: usize,
        /// The text.
        text: String,
    },
}
