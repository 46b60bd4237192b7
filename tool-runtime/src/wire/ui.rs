//! UI streams: the events of a run as bytes for chat UIs, in four protocols, and [`ChatReader`] for the bodies that
//! they post.
//!
//! The rules that the code names:
//!
//! | rule | meaning |
//! | --- | --- |
//! | U1 | Start, arguments, end of arguments, result: each once and in this order per call; every stream ends with its end frame |
//! | U2 | Frames that the packages refuse are never written |
//! | U3 | Approvals have frames in `ui-message-stream`, and are interrupts at the end of a run in `ag-ui`; elsewhere the call stays open and the turn ends with `tool-calls` |
//! | U4 | Arguments that did not parse are shown as `{}` and an error |
//! | U5 | Parents and artifacts exist in `data-stream` and `assistant-transport` only |
//! | U6 | `data-stream` finishes the arguments of one call before the next one starts; results come before the end of a step |
//! | U7 | No key `__proto__` reaches a stream; it is renamed to `_proto_` |
//! | U8 | `ag-ui` ends every message, call and step before the run; a text has one id in the whole thread |
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
/// It takes events in any order, and the official packages accept each stream that it writes. Its memory grows with the
/// open calls, and by eight bytes for each call of the message.
///
/// ```
/// use tool_runtime::Event;
/// use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
///
/// let mut encoder = UiEncoder::new(Protocol::UiMessageStream);
/// let mut body = encoder.push(&UiEvent::MessageStart { id: "msg_1".to_owned() });
/// body.extend(encoder.push(&UiEvent::TextDelta { text: "Hi".to_owned() }));
/// // The sink of a run passes on the events of the runner and the loop.
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
    /// Creates an encoder for a message that begins with this response.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { order: Order::new(protocol), steps: Steps::default(), finished: false }
    }

    /// Creates an encoder for a response that continues a message, such as the one after an approval.
    ///
    /// `message_id` is the id of the message that the client shows; `calls` are its calls that were suspended, such as
    /// those of [`Conversation::waiting`](crate::agent::Conversation::waiting). With
    /// [`Protocol::UiMessageStream`] and [`Protocol::AgUi`] these calls are updated in place: they get their output,
    /// refusal or failure before the next step begins. The other protocols start them again.
    ///
    /// A call of AG-UI that still waits at the end of the response is an interrupt that only a conversation's own
    /// [`ui_stream`](crate::agent::Conversation::ui_stream) can name by its question.
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

    /// Creates an encoder for a response that continues a message, if the party that each call waits for is known.
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

    /// An earlier response asked about this call, and its client does not know the decision: it is written before the
    /// result.
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

    /// Sets the ids of an AG-UI run: those of the request, [`ChatRequest::chat_id`] and [`ChatRequest::run_id`].
    /// Without them the thread and the run are named like the message. The other protocols have no such ids, and after
    /// the first event of the run they no longer change.
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

    /// Takes an event and returns the bytes to send now.
    #[must_use = "the bytes are given once"]
    pub fn push(&mut self, event: &UiEvent) -> Vec<u8> {
        self.order.push(event);
        self.order.take()
    }

    /// Takes an event of the runner and returns the bytes to send now.
    ///
    /// A step begins with text or a call that comes after results. Arguments without deltas are the masked ones of
    /// the result. The id of a question is the id of its call.
    #[must_use = "the bytes are given once"]
    pub fn push_event(&mut self, event: &Event) -> Vec<u8> {
        self.steps.push(event, &mut self.order);
        self.order.take()
    }

    /// Ends the stream: settles open parts and writes the end frame. Returns no bytes the second time.
    #[must_use = "the bytes are given once"]
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
