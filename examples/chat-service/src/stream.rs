//! The bytes of one response: what the run tells, as a UI message stream.

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tool_runtime::CallId;
use tool_runtime::call::{Event, EventSink};
use tool_runtime::wire::ui::UiEncoder;

/// Encodes events and hands the bytes on. What a response may hold is bounded by the policy and the agent's limits.
pub(crate) struct Writer {
    encoder: Mutex<UiEncoder>,
    elsewhere: HashSet<CallId>,
    out: UnboundedSender<Bytes>,
}

/// The bytes of a response as they arrive.
pub(crate) struct Reader(UnboundedReceiver<Bytes>);

/// The two ends of a response that `encoder` writes. How the calls in `elsewhere` end is not part of it.
pub(crate) fn open(encoder: UiEncoder, elsewhere: impl IntoIterator<Item = CallId>) -> (Arc<Writer>, Reader) {
    let (out, bytes) = unbounded_channel();
    let elsewhere = elsewhere.into_iter().collect();
    (Arc::new(Writer { encoder: Mutex::new(encoder), elsewhere, out }), Reader(bytes))
}

impl Writer {
    /// Writes the end.
    pub(crate) fn finish(&self) {
        self.send(UiEncoder::finish);
    }

    fn send(&self, write: impl FnOnce(&mut UiEncoder) -> Vec<u8>) {
        // Sent under the lock, so that bytes leave in the order in which they were written.
        let mut encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = write(&mut encoder);
        if !bytes.is_empty() {
            // A client that is gone takes nothing; the turn goes on without it.
            let _ = self.out.send(bytes.into());
        }
    }
}

impl EventSink for Writer {
    fn emit(&self, event: Event) {
        if !matches!(&event, Event::ToolCallResult { id, .. } if self.elsewhere.contains(id)) {
            self.send(|encoder| encoder.push_event(&event));
        }
    }
}

impl Stream for Reader {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(Ok))
    }
}
