//! UI streams: what a run does, as bytes for the chat UIs of three protocols.
//!
//! The rules that the code names:
//!
//! | rule | what it says |
//! | --- | --- |
//! | U1 | Start, arguments, end of arguments, result: each once and in this order per call; every stream ends with its end frame |
//! | U2 | Nothing that the packages refuse is ever written |
//! | U3 | Approvals have frames in `ui-message-stream` only; elsewhere the call stays open and the turn ends with `tool-calls` |
//! | U4 | Arguments that did not parse are shown as `{}` and an error |
//! | U5 | Parents and artifacts exist in the first two protocols only |
//! | U6 | `data-stream` finishes the arguments of one call before the next one starts; results come before the end of a step |
//! | U7 | No key `__proto__` reaches a stream; it is renamed to `_proto_` |
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

mod assistant_transport;
mod call;
mod data_stream;
mod event;
mod frame;
mod keys;
mod message_stream;
mod order;
mod protocol;
mod steps;

pub use event::UiEvent;
pub use protocol::{Protocol, UnknownProtocol};

use crate::call::Event;
use order::Order;
use steps::Steps;

/// Writes one message as a stream.
///
/// Takes events in any order; what comes out is always a stream that the packages accept. Memory grows with the
/// calls that are open, not with the stream, but for eight bytes a call.
#[derive(Debug)]
pub struct UiEncoder {
    order: Order,
    steps: Steps,
    finished: bool,
}

impl UiEncoder {
    /// An encoder for one message.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { order: Order::new(protocol), steps: Steps::default(), finished: false }
    }

    /// Takes an event and gives the bytes to send now.
    #[must_use = "the bytes are given once"]
    pub fn push(&mut self, event: &UiEvent) -> Vec<u8> {
        self.order.push(event);
        self.order.take()
    }

    /// Takes an event of the runner and gives the bytes to send now.
    ///
    /// A step begins with text or a call that comes after results. Arguments without deltas are the masked ones of
    /// the result. The id of a question is the id of its call.
    #[must_use = "the bytes are given once"]
    pub fn push_event(&mut self, event: &Event) -> Vec<u8> {
        self.steps.push(event, &mut self.order);
        self.order.take()
    }

    /// Ends the stream: settles what is open and writes the end frame. Gives nothing the second time.
    #[must_use = "the bytes are given once"]
    pub fn finish(&mut self) -> Vec<u8> {
        if !std::mem::replace(&mut self.finished, true) {
            self.order.finish("other", self.steps.total());
            self.order.end();
        }
        self.order.take()
    }
}
