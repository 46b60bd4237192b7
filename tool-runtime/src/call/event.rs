//! [`Event`]: an event of a run, and [`EventSink`], which receives the events.

mod debug;
mod document;

use serde::Serialize;

use crate::call::usage::{is_false, is_zero};
use crate::call::{ArgumentChange, CallId, JsonText, LeftOut, NamedArgument, Outcome, Question, SafeError};

/// Receives the events of a run.
pub(crate) type EventSink = dyn Fn(Event) + Send + Sync;

/// An event of a run. Results in it are redacted, and sensitive arguments are masked. `Debug` shows only names, ids and
/// sizes.
///
/// ```
/// use tool_runtime::{Event, RunOptions};
///
/// let options = RunOptions::new().events(|event: Event| match event {
///     Event::ToolCallStart { name, .. } => println!("{name} begins"),
///     Event::ToolCallResult { name, outcome, .. } => println!("{name} ended as {outcome}"),
///     Event::ToolCallSuspended { name, summary, .. } => println!("{name} waits: {}", summary.unwrap_or_default()),
///     _ => {}
/// });
/// # drop(options);
/// ```
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
    /// Reasoning of the model that its provider marks as showable.
    #[non_exhaustive]
    ReasoningDelta {
        /// The text.
        text: String,
    },
    /// A page or a document that the provider names as a source of the model's text.
    #[non_exhaustive]
    Source {
        /// An id, unique within the turn (one response of the model).
        id: String,
        /// The address of a page; `None` for a document that has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The title; `None` if the source has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A file that the model made or a tool returned.
    #[non_exhaustive]
    File {
        /// The media type, such as `image/png`.
        media_type: String,
        /// A data URL, or the address from which to fetch the file.
        url: String,
    },
    /// Data of the application for its own UI.
    #[non_exhaustive]
    Data {
        /// The kind of the data, by which the UI chooses how to show it.
        name: String,
        /// Data with the same name and id replaces the earlier data. `None` for data that replaces nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The data.
        value: JsonText,
    },
    /// A piece of a call that the model is writing, for display only. The call is not validated, and may never be
    /// completed.
    ///
    /// The first delta of a call is empty, and announces the call before its start. Deltas with text follow only for
    /// tools without sensitive arguments.
    #[non_exhaustive]
    ToolCallDelta {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The next piece of the argument text.
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
        /// The arguments, with sensitive values masked; `None` if they are not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<JsonText>,
        /// The sentences about this call for the person who decides: the tool's `summary`, its precondition, and
        /// earlier calls of the same effect with an unknown outcome. `None` if there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// The differences between the arguments that the model wrote and those that the tool gets: defaults, trimmed
        /// ids, repairs, and edits of a person.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        changes: Vec<ArgumentChange>,
        /// Names that were looked up for values among the arguments.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        names: Vec<NamedArgument>,
        /// The reason: [`Outcome::ApprovalRequired`] or [`Outcome::ClientRequired`].
        outcome: Outcome,
        /// The prepared payload of a client tool; `None` for an approval.
        #[serde(skip_serializing_if = "Option::is_none")]
        prepared: Option<JsonText>,
        /// The question that a decision on the call must answer.
        question: Question,
    },
    /// A call ended. Emitted exactly once for each call.
    #[non_exhaustive]
    ToolCallResult {
        /// The id of the call.
        id: CallId,
        /// The name as the model wrote it, cut to 128 bytes.
        name: String,
        /// The arguments, with sensitive values masked; `None` if they could not be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<JsonText>,
        /// The outcome.
        outcome: Outcome,
        /// The value after redaction; `None` unless the outcome is [`Outcome::Ok`].
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<JsonText>,
        /// The error; `None` if the outcome is [`Outcome::Ok`].
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<SafeError>,
        /// Whether the tool began to run, here or at a client.
        executed: bool,
        /// The amount of output that was omitted to keep the value within the tool's limit.
        #[serde(skip_serializing_if = "LeftOut::is_none")]
        left_out: LeftOut,
        /// The id of an earlier call that already had the same effect. The value is its result, and the tool did not
        /// run again. `None` for every other call.
        #[serde(skip_serializing_if = "Option::is_none")]
        earlier_call: Option<CallId>,
    },
    /// An event of a graph (an agent or a script that runs as a tool) that this run called. UIs that show a
    /// conversation leave this event out, because its text is not an answer to the user.
    #[non_exhaustive]
    Graph {
        /// The id of the call of the graph.
        id: CallId,
        /// The name of the graph.
        name: String,
        /// The event in the graph.
        event: Box<Event>,
    },
    /// The tokens of a turn, which is one response of the model.
    #[non_exhaustive]
    Usage {
        /// Tokens read.
        input_tokens: u64,
        /// Tokens written.
        output_tokens: u64,
        /// The part of the tokens read that came from the provider's cache.
        #[serde(skip_serializing_if = "is_zero")]
        cache_read_tokens: u64,
        /// The part of the tokens read that went into the provider's cache.
        #[serde(skip_serializing_if = "is_zero")]
        cache_write_tokens: u64,
        /// The part of the tokens written that is reasoning.
        #[serde(skip_serializing_if = "is_zero")]
        reasoning_tokens: u64,
        /// Whether a count is an estimate, because the provider sent no usable count.
        #[serde(skip_serializing_if = "is_false")]
        estimated: bool,
    },
    /// A status message for people.
    #[non_exhaustive]
    Status {
        /// The text.
        text: String,
    },
    /// The request failed, or a decision or a client's answer in it was refused.
    #[non_exhaustive]
    Error {
        /// A stable code.
        code: String,
        /// A safe sentence.
        message: String,
    },
    /// The request is over. Emitted exactly once for each request.
    #[non_exhaustive]
    Done {
        /// The stable code of the reason, such as `answered`.
        reason: String,
    },
}

impl Event {
    /// Creates an event with data of the application for its own UI. Pass it to the sink of a [`UiStream`], between the
    /// events of the run.
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
