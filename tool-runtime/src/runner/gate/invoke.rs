//! Polls a tool's future. Panics, timeouts and cancellation become an [`Interrupted`].

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use crate::call::{Bounds, Cause};
use crate::contain::{attempted, discard};

/// The reason why a future did not end by itself.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::runner) struct Interrupted {
    pub(in crate::runner) cause: Cause,
    /// The details for operators: the message of a panic, or the limit that was exceeded.
    text: String,
}

impl Interrupted {
    /// Creates the reason for a process that lost its lease on the call.
    pub(in crate::runner) const fn lost() -> Self {
        Self::new(Cause::Lost, String::new())
    }

    const fn new(cause: Cause, text: String) -> Self {
        Self { cause, text }
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Cause::Timeout => write!(f, "it took longer than {}", self.text),
            Cause::Cancelled => f.write_str("it was cancelled"),
            Cause::Panicked => write!(f, "it panicked: {}", self.text),
            Cause::Lost | Cause::Prevented => f.write_str("its process lost the lease of the call"),
        }
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs `future` until it ends, panics, times out or is cancelled.
///
/// The timer is created after the first `Pending`, so a tool that is ready at once needs none. The token of `bounds`
/// fires on a timeout, so that the tool's work on other threads can stop.
#[inline]
pub(in crate::runner) async fn contained<T>(future: Boxed<'_, T>, bounds: Bounds<'_>) -> Result<T, Interrupted> {
    let mut tool = Contained { future: Some(future) };
    if let Poll::Ready(ended) = poll_fn(|cx| Poll::Ready(tool.poll(cx))).await {
        return ended;
    }
    // On the heap, because a timer is larger than the rest of this future.
    Box::pin(waited_for(tool, bounds)).await
}

/// Polls until the tool ends, its time is up, or it is cancelled.
async fn waited_for<T>(mut tool: Contained<'_, T>, bounds: Bounds<'_>) -> Result<T, Interrupted> {
    let mut timer = pin!(async move {
        match bounds.deadline() {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    });
    let mut cancelled = pin!(bounds.token().cancelled());
    poll_fn(|cx| {
        if let Poll::Ready(ended) = tool.poll(cx) {
            return Poll::Ready(ended);
        }
        if timer.as_mut().poll(cx).is_ready() {
            bounds.token().cancel();
            let limit = bounds.timeout().map(|timeout| format!("{timeout:?}")).unwrap_or_default();
            return Poll::Ready(Err(Interrupted::new(Cause::Timeout, limit)));
        }
        cancelled.as_mut().poll(cx).map(|()| Err(Interrupted::new(Cause::Cancelled, String::new())))
    })
    .await
}

/// Catches the panics of a future while it is polled and while it is dropped.
struct Contained<'a, T> {
    future: Option<Boxed<'a, T>>,
}

impl<T> Contained<'_, T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Interrupted>> {
        let Some(future) = &mut self.future else {
            return Poll::Ready(Err(Interrupted::new(Cause::Cancelled, String::new())));
        };
        let ended = match attempted(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(text) => Err(Interrupted::new(Cause::Panicked, text)),
        };
        discard(self.future.take());
        Poll::Ready(ended)
    }
}

impl<T> Drop for Contained<'_, T> {
    fn drop(&mut self) {
        discard(self.future.take());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::call::Ends;

    async fn check(future: impl Future<Output = u8> + Send + 'static, expected: Result<u8, Cause>) {
        let (token, ends) = (CancellationToken::new(), Ends::default());
        let bounds = Bounds::new(Some(Duration::from_secs(1)), &token, &ends);
        let ended = contained(Box::pin(future), bounds).await;
        assert_eq!(ended.map_err(|interrupted| interrupted.cause), expected);
    }

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_end_is_contained() {
        check(async { 7 }, Ok(7)).await;
        check(async { panic!("at once") }, Err(Cause::Panicked)).await;
        check(
            async {
                tokio::task::yield_now().await;
                panic!("later")
            },
            Err(Cause::Panicked),
        )
        .await;
        check(std::future::pending(), Err(Cause::Timeout)).await;
        check(
            async {
                let _bomb = Bomb;
                std::future::pending().await
            },
            Err(Cause::Timeout),
        )
        .await;
        check(
            async {
                std::panic::panic_any(Bomb);
            },
            Err(Cause::Panicked),
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_run_stops_its_tool() {
        let (token, ends) = (CancellationToken::new(), Ends::default());
        token.cancel();
        let ended = contained(Box::pin(std::future::pending::<u8>()), Bounds::new(None, &token, &ends)).await;
        assert_eq!(ended.map_err(|interrupted| interrupted.cause), Err(Cause::Cancelled));
    }
}
