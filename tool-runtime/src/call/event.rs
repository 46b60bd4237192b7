//! [`Event`]: what happens in a run while it happens, and [`EventSink`], which takes the events.

mod debug;
mod sink;

use serde::{Deserialize, Deserializer, Serialize};

pub use self::sink::EventSink;

use crate::call::usage::is_zero;
use crate::call::{ArgumentChange, CallId, JsonText, NamedArgument, Outcome, SafeError};

/// One thing that happened in a run. Holds projected and masked data only; `Debug` shows names, ids and sizes.
#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Text that the model writes.
    #[non_exhaustive]
    TextDelta {
        /// The text.
        text: String,
    },
    /// Reasoning of the model, as far as its provider marks it as showable.
    #[non_exhaustive]
    ReasoningDelta {
        /// The text.
        text: String,
    },
    /// A source of the model's text.
    #[non_exhaustive]
    Source {
        /// An id, unique within the turn.
        id: String,
        /// The address of a page; `None` for a document that has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The title; `None` if it has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A file that the model made or a tool returned.
    #[non_exhaustive]
    File {
        /// The media type, such as `image/png`.
        media_type: String,
        /// A data URL, or the address from which to fetch it.
        url: String,
    },
    /// Data of the application for its own UI.
    #[non_exhaustive]
    Data {
        /// What the data is; the UI chooses how to show it by this name.
        name: String,
        /// Data with the same name and id replaces what was shown before; `None` for data that replaces nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The data.
        value: JsonText,
    },
    /// A call that the model is writing, for display only: it is not validated, and may never be completed.
    ///
    /// The first one of a call is empty and announces it, before the start of the call. Text follows for tools without
    /// sensitive arguments only.
    #[non_exhaustive]
    ToolCallDelta {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The next piece of the text.
        delta: String,
    },
    /// A call arrived. Emitted before anything is checked.
    #[non_exhaustive]
    ToolCallStart {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
    },
    /// A call waits for a person or for a client.
    #[non_exhaustive]
    ToolCallSuspended {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The arguments with the sensitive ones masked; `None` if they are not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<JsonText>,
        /// What the call would do, in the sentence of the tool's author; `None` if the tool has no sentence.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// What the tool gets that the model did not write like this: defaults, trimmed ids, repairs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        changes: Vec<ArgumentChange>,
        /// Names that were looked up for values among the arguments.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        names: Vec<NamedArgument>,
        /// Why: [`Outcome::ApprovalRequired`] or [`Outcome::ClientRequired`].
        outcome: Outcome,
        /// The prepared payload of a client tool; `None` for an approval.
        #[serde(skip_serializing_if = "Option::is_none")]
        prepared: Option<JsonText>,
    },
    /// A call ended. Exactly one per call.
    #[non_exhaustive]
    ToolCallResult {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The arguments with the sensitive ones masked; `None` if they could not be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<JsonText>,
        /// How it ended.
        outcome: Outcome,
        /// The projected value; `None` unless the outcome is [`Outcome::Ok`].
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<JsonText>,
        /// What went wrong; `None` if the outcome is [`Outcome::Ok`].
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<SafeError>,
        /// Whether the tool began to run.
        executed: bool,
    },
    /// Something happened in a graph that this run called. UIs that show a conversation leave it out: its text is not
    /// an answer to the user.
    #[non_exhaustive]
    Graph {
        /// The id of the call of the graph.
        id: CallId,
        /// The name of the graph.
        name: String,
        /// What happened.
        event: Box<Event>,
    },
    /// What the model consumed.
    #[non_exhaustive]
    Usage {
        /// Tokens read.
        input_tokens: u64,
        /// Tokens written.
        output_tokens: u64,
        /// Tokens of those read that came from the provider's cache.
        #[serde(skip_serializing_if = "is_zero")]
        cache_read_tokens: u64,
        /// Tokens of those read that went into the provider's cache.
        #[serde(skip_serializing_if = "is_zero")]
        cache_write_tokens: u64,
        /// Tokens of those written that the model wrote to reason.
        #[serde(skip_serializing_if = "is_zero")]
        reasoning_tokens: u64,
    },
    /// Something worth showing a person.
    #[non_exhaustive]
    Status {
        /// The text.
        text: String,
    },
    /// The turn failed.
    #[non_exhaustive]
    Error {
        /// A stable code.
        code: String,
        /// A safe sentence.
        message: String,
    },
    /// The turn is over. Exactly one.
    #[non_exhaustive]
    Done {
        /// Why it is over.
        reason: String,
    },
}

impl Event {
    /// Creates data of the application for its own UI, to be given to the sink of a [`UiStream`] between the events of
    /// the run.
    ///
    /// [`UiStream`]: crate::agent::UiStream
    ///
    /// ```
    /// use tool_runtime::Event;
    ///
    /// let event = Event::data("weather", None, serde_json::value::to_raw_value(&21)?);
    /// assert_eq!(serde_json::to_string(&event)?, r#"{"type":"data","name":"weather","value":21}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn data(name: impl Into<String>, id: Option<&str>, value: impl Into<JsonText>) -> Self {
        Self::Data { name: name.into(), id: id.map(str::to_owned), value: value.into() }
    }
}

/// The fields of all variants: a raw value cannot be read out of a tagged enum.
#[derive(Deserialize)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    name: Option<String>,
    delta: Option<String>,
    arguments: Option<JsonText>,
    summary: Option<String>,
    #[serde(default)]
    changes: Vec<ArgumentChange>,
    #[serde(default)]
    names: Vec<NamedArgument>,
    outcome: Option<Outcome>,
    prepared: Option<JsonText>,
    value: Option<JsonText>,
    error: Option<SafeError>,
    executed: Option<bool>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_tokens: u64,
    #[serde(default)]
    cache_write_tokens: u64,
    #[serde(default)]
    reasoning_tokens: u64,
    text: Option<String>,
    code: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    url: Option<String>,
    title: Option<String>,
    media_type: Option<String>,
    event: Option<Box<Event>>,
}

/// Reads what [`Serialize`] wrote, so that events can cross a process.
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;

        let read = Document::deserialize(deserializer)?;
        macro_rules! needed {
            ($($field:ident),+) => { ($(read.$field.ok_or_else(|| D::Error::missing_field(stringify!($field)))?),+) };
        }
        Ok(match read.kind.as_str() {
            "text_delta" => Self::TextDelta { text: needed!(text) },
            "reasoning_delta" => Self::ReasoningDelta { text: needed!(text) },
            "source" => Self::Source { id: needed!(id), url: read.url, title: read.title },
            "file" => {
                let (media_type, url) = needed!(media_type, url);
                Self::File { media_type, url }
            }
            "data" => {
                // `null` is a value, too.
                let value = read.value.unwrap_or_else(JsonText::null);
                Self::Data { name: needed!(name), id: read.id, value }
            }
            "tool_call_delta" => {
                let (id, name, delta) = needed!(id, name, delta);
                Self::ToolCallDelta { id: id.into(), name, delta }
            }
            "tool_call_start" => {
                let (id, name) = needed!(id, name);
                Self::ToolCallStart { id: id.into(), name }
            }
            "tool_call_suspended" => {
                let (id, name, outcome) = needed!(id, name, outcome);
                let Document { arguments, summary, changes, names, prepared, .. } = read;
                let id = id.into();
                Self::ToolCallSuspended { id, name, arguments, summary, changes, names, outcome, prepared }
            }
            "tool_call_result" => {
                let (id, name, outcome, executed) = needed!(id, name, outcome, executed);
                let (id, arguments, value, error) = (id.into(), read.arguments, read.value, read.error);
                Self::ToolCallResult { id, name, arguments, outcome, value, error, executed }
            }
            "graph" => {
                let (id, name, event) = needed!(id, name, event);
                Self::Graph { id: id.into(), name, event }
            }
            "usage" => {
                let (input_tokens, output_tokens) = needed!(input_tokens, output_tokens);
                let Document { cache_read_tokens, cache_write_tokens, reasoning_tokens, .. } = read;
                Self::Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens }
            }
            "status" => Self::Status { text: needed!(text) },
            "error" => {
                let (code, message) = needed!(code, message);
                Self::Error { code, message }
            }
            "done" => Self::Done { reason: needed!(reason) },
            other => return Err(D::Error::custom(format_args!("`{other}` is not an event of this library"))),
        })
    }
}
