//! Catches panics in authors' code, including a panic in the destructor of a panic's payload.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use crate::text::cut;

/// The maximum number of bytes kept of a panic's message.
const MESSAGE_BYTES: usize = 2048;

/// Runs code that may panic; returns `None` if it did.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    attempted(work).ok()
}

/// Runs code that may panic. `Err` holds the panic's message, which can contain private data and is for operators only.
pub(crate) fn attempted<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(message)
}

/// Makes and awaits a future whose creation, polling or drop may panic. `Err` holds the message of the panic.
pub(crate) async fn awaited<'a, T>(
    make: impl FnOnce() -> Pin<Box<dyn Future<Output = T> + Send + 'a>>,
) -> Result<T, String> {
    let mut future = Dropped(Some(attempted(make)?));
    poll_fn(|cx| match &mut future.0 {
        None => Poll::Ready(Err(String::new())),
        Some(running) => match attempted(|| running.as_mut().poll(cx)) {
            Ok(poll) => poll.map(Ok),
            Err(text) => {
                discard(future.0.take());
                Poll::Ready(Err(text))
            }
        },
    })
    .await
}

/// A value whose destructor may panic.
struct Dropped<T>(Option<T>);

impl<T> Drop for Dropped<T> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

/// Drops a value whose destructor may panic.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // The payload's own destructor may panic, and so may the next payload's. Leaking this one ends the chain.
        std::mem::forget(payload);
    }
}

#[cold]
fn message(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<&str>() {
        Some(text) => text,
        None => payload.downcast_ref::<String>().map_or("", String::as_str),
    };
    let text = cut(text, MESSAGE_BYTES).to_owned();
    discard(payload);
    text
}
