//! The bytes of one response: what the run tells, as a UI message stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tool_runtime::call::{Event, EventSink};
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};

/// Encodes events and hands the bytes on. What a response may hold is bounded by the policy and the agent's limits.
pub(crate) struct Writer {
    encoder: Mutex<UiEncoder>,
    out: UnboundedSender<Bytes>,
}

/// The bytes of a response as they arrive.
pub(crate) struct Reader(UnboundedReceiver<Bytes>);

pub(crate) fn open(message: String) -> (Arc<Writer>, Reader) {
    let (out, bytes) = unbounded_channel();
    let mut encoder = UiEncoder::new(Protocol::UiMessageStream);
    let first = encoder.push(&UiEvent::MessageStart { id: message });
    // A client that is gone takes nothing; the turn goes on without it.
    let _ = out.send(first.into());
    (Arc::new(Writer { encoder: Mutex::new(encoder), out }), Reader(bytes))
}

impl Writer {
    /// Writes the end.
    pub(crate) fn finish(&self) {
        let bytes = self.encoder.lock().unwrap_or_else(PoisonError::into_inner).finish();
        let _ = self.out.send(bytes.into());
    }
}

impl EventSink for Writer {
    fn emit(&self, event: Event) {
        let bytes = self.encoder.lock().unwrap_or_else(PoisonError::into_inner).push_event(&event);
        if !bytes.is_empty() {
            let _ = self.out.send(bytes.into());
        }
    }
}

impl Stream for Reader {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(Ok))
    }
}
