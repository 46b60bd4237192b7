//! UI streams: [`UiEncoder`] writes the events of a run as bytes for chat UIs, in four protocols. [`ChatReader`] reads
//! the bodies that the UIs post.
//!
//! Comments refer to these rules. "Clients" are the official packages that read the streams.
//!
//! | rule | meaning |
//! | --- | --- |
//! | U1 | A call has a start, arguments, an end of the arguments and a result, each once and in this order; every stream ends with the end frame of its protocol |
//! | U2 | Encoders never write frames that clients refuse |
//! | U3 | `ui-message-stream` has frames for approvals, and `ag-ui` ends the run with an interrupt; in the other protocols the call stays open and the message ends with `tool-calls` |
//! | U4 | Arguments that did not parse are shown as `{}` with an error |
//! | U5 | Only `data-stream` and `assistant-transport` show the parent of a call and the artifact of a result |
//! | U6 | `data-stream` finishes the arguments of one call before the next call starts; results come before the end of a step |
//! | U7 | A key `__proto__` is renamed to `_proto_`, so that it never reaches a stream |
//! | U8 | `ag-ui` ends every message, call and step before the run; the id of a text is unique in the thread |
//!
//! ```
//! use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
//!
//! let mut encoder = UiEncoder::new(Protocol::DataStream);
//! encoder.push(&UiEvent::MessageStart { id: "msg_1".to_owned() });
//! let bytes = encoder.push(&UiEvent::TextDelta { text: "Hi".to_owned() });
//! assert_eq!(bytes, b"f:{\"messageId\":\"msg_1\"}\n0:\"Hi\"\n");
//! assert!(encoder.finish().ends_with(b"\n"));
//! ```

mod ag_ui;
mod assistant_transport;
mod call;
mod data_stream;
mod event;
mod frame;
mod keys;
mod message_stream;
mod order;
mod protocol;
mod read;
mod steps;

pub use event::UiEvent;
pub use protocol::Protocol;
pub use read::{ChatReader, ChatRequest};

use std::fmt;

use self::call::Earlier;
use crate::call::{CallId, Event, Question, Suspension};
use order::Order;
use steps::Steps;

/// Writes the events of a run as the stream of one message for a chat UI.
///
/// It accepts events in any order, and the official client packages accept each stream that it writes. Its memory grows
/// with the open calls, and by eight bytes for each call of the message.
///
/// ```
/// use tool_runtime::Event;
/// use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
///
/// let mut encoder = UiEncoder::new(Protocol::UiMessageStream);
/// let mut body = encoder.push(&UiEvent::MessageStart { id: "msg_1".to_owned() });
/// body.extend(encoder.push(&UiEvent::TextDelta { text: "Hi".to_owned() }));
/// // In an application, the sink of a run passes on its events; this one is made by hand.
/// body.extend(encoder.push_event(&Event::data("weather", None, serde_json::value::to_raw_value(&21)?)));
/// body.extend(encoder.finish());
/// assert!(body.ends_with(b"data: [DONE]\n\n"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub struct UiEncoder {
    order: Order,
    steps: Steps,
    finished: bool,
}

impl UiEncoder {
    /// Creates an encoder for a response that begins a new message.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { order: Order::new(protocol), steps: Steps::default(), finished: false }
    }

    /// Creates an encoder for a response that continues a message, such as the one after an approval.
    ///
    /// `message_id` is the id of the message that the client shows. `calls` are its suspended calls, such as those of
    /// [`Conversation::waiting`](crate::agent::Conversation::waiting). [`Protocol::UiMessageStream`] and
    /// [`Protocol::AgUi`] update these calls in place: each gets its output, refusal or failure before the next step
    /// begins. The other protocols start them again.
    ///
    /// In AG-UI, a call that still waits at the end of the response becomes an interrupt. Only the
    /// [`ui_stream`](crate::agent::Conversation::ui_stream) of a conversation can give this interrupt the id of its
    /// question.
    ///
    /// ```
    /// use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
    ///
    /// let mut encoder = UiEncoder::resuming(Protocol::UiMessageStream, "msg_1", ["call_1"]);
    /// let denied: UiEvent = serde_json::from_str(r#"{"type":"tool_denied","id":"call_1"}"#)?;
    /// let text = String::from_utf8(encoder.push(&denied))?;
    /// assert!(text.contains(r#"{"type":"start","messageId":"msg_1"}"#));
    /// assert!(text.ends_with("{\"type\":\"tool-output-denied\",\"toolCallId\":\"call_1\"}\n\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn resuming<I>(protocol: Protocol, message_id: &str, calls: I) -> Self
    where
        I: IntoIterator<Item: Into<CallId>>,
    {
        Self::continued(protocol, message_id, calls.into_iter().map(|id| (id.into().to_string(), Earlier::Unknown)))
    }

    /// Like [`resuming`](Self::resuming), but each call comes with its question and the party for which it waits.
    pub(crate) fn continuing(
        protocol: Protocol,
        message_id: &str,
        calls: impl Iterator<Item = (Suspension, Question)>,
    ) -> Self {
        let asked = |(suspension, question): (_, Question)| {
            (question.call_id().to_string(), Earlier::of(suspension, &question))
        };
        Self::continued(protocol, message_id, calls.map(asked))
    }

    /// Records that another client answered the question about this call. The stream then writes the decision before
    /// the result.
    pub(crate) fn decided_elsewhere(&mut self, id: &CallId) {
        if let Some(call) = self.order.call(id.as_str()) {
            call.decided_elsewhere();
        }
    }

    fn continued(protocol: Protocol, message_id: &str, calls: impl Iterator<Item = (String, Earlier)>) -> Self {
        let mut encoder = Self::new(protocol);
        encoder.order.resume(message_id, calls);
        encoder
    }

    /// Sets the ids of an AG-UI run to those of the request: [`ChatRequest::chat_id`] and [`ChatRequest::run_id`]. By
    /// default, the id of the message is used for both. The ids cannot change after the first event of the run. The
    /// other protocols have no such ids.
    ///
    /// ```
    /// use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
    ///
    /// let mut encoder = UiEncoder::new(Protocol::AgUi).for_run("thread_1", "run_1");
    /// let text = String::from_utf8(encoder.push(&UiEvent::TextDelta { text: "Hi".to_owned() }))?;
    /// assert!(text.starts_with(r#"data: {"type":"RUN_STARTED","threadId":"thread_1","runId":"run_1""#));
    /// # Ok::<(), std::string::FromUtf8Error>(())
    /// ```
    #[must_use]
    pub fn for_run(mut self, thread_id: &str, run_id: &str) -> Self {
        self.set_run(thread_id, run_id);
        self
    }

    pub(crate) fn set_run(&mut self, thread_id: &str, run_id: &str) {
        self.order.for_run(thread_id, run_id);
    }

    /// Encodes an event and returns the bytes to send now.
    #[must_use = "the bytes are returned only once"]
    pub fn push(&mut self, event: &UiEvent) -> Vec<u8> {
        self.order.push(event);
        self.order.take()
    }

    /// Encodes an event of the runner and returns the bytes to send now.
    ///
    /// Text or a call that follows results begins a new step. If the arguments had no deltas, the masked arguments of
    /// the result are shown. The id of a question is the text of its [`Question`].
    #[must_use = "the bytes are returned only once"]
    pub fn push_event(&mut self, event: &Event) -> Vec<u8> {
        self.steps.push(event, &mut self.order);
        self.order.take()
    }

    /// Ends the stream: ends open parts and writes the end frame. A second call returns no bytes.
    #[must_use = "the bytes are returned only once"]
    pub fn finish(&mut self) -> Vec<u8> {
        if !std::mem::replace(&mut self.finished, true) {
            self.order.finish("other", self.steps.total());
            self.order.end();
        }
        self.order.take()
    }
}

// Events that are held back stay out of logs.
impl fmt::Debug for UiEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiEncoder").field("finished", &self.finished).finish_non_exhaustive()
    }
}
