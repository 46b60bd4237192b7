//! [`ExpiringBody`]: the body of an answer, which ends when the token of its request expires.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::{Sleep, sleep};

use crate::mcp::serve::body::Body;

/// A body that ends when a token expires. The rest of the body is dropped, as if the client had closed the stream.
pub(super) struct ExpiringBody {
    body: Option<Body>,
    expires: Pin<Box<Sleep>>,
}

impl ExpiringBody {
    /// Wraps a body that must end after `time`.
    pub(super) fn body(body: Body, time: Duration) -> Body {
        Self { body: Some(body), expires: Box::pin(sleep(time)) }.boxed()
    }
}

impl http_body::Body for ExpiringBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.expires.as_mut().poll(context).is_ready() {
            self.body = None;
        }
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}
