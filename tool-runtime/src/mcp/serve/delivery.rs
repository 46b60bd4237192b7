//! [`Delivery`]: tracks whether the transport has sent the answer to a request.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use rmcp::model::Extensions;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::mcp::serve::body::Body;

/// The delivery of one request's answer. Cheap to clone; the transport and the request's handler share it.
#[derive(Clone)]
pub(super) struct Delivery(Arc<Inner>);

struct Inner {
    /// When the request arrived.
    since: Instant,
    /// Fires when the client goes away before its answer was sent.
    gone: CancellationToken,
    state: Mutex<DeliveryState>,
}

#[derive(Default)]
struct DeliveryState {
    has_left: Option<bool>,
    then: Option<OnDelivery>,
}

type OnDelivery = Box<dyn FnOnce(bool) + Send>;

impl Delivery {
    /// Creates the delivery for a request that has just arrived.
    pub(super) fn begin() -> Self {
        Self(Arc::new(Inner { since: Instant::now(), gone: CancellationToken::new(), state: Mutex::default() }))
    }

    /// Returns the delivery of a request. `None` if its transport does not track answers.
    pub(super) fn of(extensions: &Extensions) -> Option<Self> {
        let over_http = || extensions.get::<Parts>()?.extensions.get().cloned();
        extensions.get().cloned().or_else(over_http)
    }

    /// Returns the time when the request arrived.
    pub(super) fn since(&self) -> Instant {
        self.0.since
    }

    /// Returns the token that fires when the client goes away before its answer was sent.
    pub(super) fn gone(&self) -> &CancellationToken {
        &self.0.gone
    }

    /// Calls `then` with `true` when the answer has been sent, or with `false` when it can no longer be sent.
    pub(super) fn then(&self, then: impl FnOnce(bool) + Send + 'static) {
        let known = {
            let mut state = self.state();
            if state.has_left.is_none() {
                state.then = Some(Box::new(then));
                return;
            }
            state.has_left
        };
        // The result is known already, so `then` runs now, outside the lock.
        then(known == Some(true));
    }

    /// Marks the client as gone, because it sends no more messages. Its held request can then end.
    pub(super) fn leave(&self) {
        self.0.gone.cancel();
    }

    /// Records whether the answer was sent (`true`) or never will be (`false`). Only the first call has an effect.
    pub(super) fn ended(&self, has_left: bool) {
        let mut state = self.state();
        if state.has_left.is_some() {
            return;
        }
        state.has_left = Some(has_left);
        let then = state.then.take();
        // `then` is called outside the lock, because it may use this delivery.
        drop(state);
        if !has_left {
            self.0.gone.cancel();
        }
        if let Some(then) = then {
            then(has_left);
        }
    }

    fn state(&self) -> MutexGuard<'_, DeliveryState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The transport's side of a delivery. If it is dropped before the answer was sent, the delivery has failed.
pub(super) struct Sending(pub(super) Delivery);

impl Sending {
    /// Wraps the body of an answer, so that the end of the body completes the delivery.
    pub(super) fn with(self, body: Body) -> Body {
        Watched { body, sending: self }.boxed()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.ended(false);
    }
}

/// A body that completes a delivery when its last frame has been read.
struct Watched {
    body: Body,
    sending: Sending,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || polled.is_ready() && self.body.is_end_stream() {
            self.sending.0.ended(true);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn an_answer_leaves_once() {
        for (ends, expected) in [([true, false], 10), ([false, true], 1)] {
            let (delivery, told) = (Delivery::begin(), Arc::new(AtomicUsize::new(0)));
            let (sending, then) = (Sending(delivery.clone()), Arc::clone(&told));
            delivery.then(move |has_left| {
                then.fetch_add(if has_left { 10 } else { 1 }, Ordering::Relaxed);
            });
            ends.into_iter().for_each(|has_left| delivery.ended(has_left));
            drop(sending);
            assert_eq!((told.load(Ordering::Relaxed), delivery.gone().is_cancelled()), (expected, expected == 1));
            let then = Arc::clone(&told);
            delivery.then(move |has_left| then.store(usize::from(has_left), Ordering::Relaxed));
            assert_eq!(told.load(Ordering::Relaxed), usize::from(expected == 10));
        }
    }
}
