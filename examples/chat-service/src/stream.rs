//! The body of a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures_core::Stream;
use tokio::task::JoinHandle;
use tool_runtime::agent::UiStream;

/// The bytes of a turn. The body ends when the turn was saved, so that a client which then sends its next request
/// finds the chat as it has seen it.
pub(crate) struct TurnBody {
    pub(crate) stream: UiStream,
    pub(crate) turn: JoinHandle<()>,
}

impl Stream for TurnBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match Pin::new(&mut self.stream).poll_next(cx) {
            Poll::Ready(None) => Pin::new(&mut self.turn).poll(cx).map(|_| None),
            other => other,
        }
    }
}
