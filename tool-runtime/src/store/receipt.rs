//! [`Receipt`]: the promise that a record is kept.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::store::StoreError;

/// Resolves once a record is kept, or could not be. It may be dropped without waiting.
#[derive(Debug)]
#[must_use = "await it, or drop it on purpose"]
pub struct Receipt(State);

#[derive(Debug)]
enum State {
    Ready(Option<Result<(), StoreError>>),
    Waiting(oneshot::Receiver<Result<(), StoreError>>),
}

/// The other end of a receipt, for the writer of a store. If it is dropped unused, the receipt is [`StoreError::Lost`].
#[derive(Debug)]
pub struct ReceiptSender(oneshot::Sender<Result<(), StoreError>>);

impl Receipt {
    /// A receipt that has resolved already.
    pub const fn ready(result: Result<(), StoreError>) -> Self {
        Self(State::Ready(Some(result)))
    }

    /// A receipt that resolves when its sender does.
    pub fn channel() -> (ReceiptSender, Self) {
        let (sender, receiver) = oneshot::channel();
        (ReceiptSender(sender), Self(State::Waiting(receiver)))
    }

    /// Whether the record is kept already, so that nobody has to wait.
    pub(crate) const fn is_kept(&self) -> bool {
        matches!(self.0, State::Ready(Some(Ok(()))))
    }
}

impl ReceiptSender {
    /// Resolves the receipt.
    pub fn send(self, result: Result<(), StoreError>) {
        // The receipt may have been dropped: nobody waits for it then.
        let _ = self.0.send(result);
    }
}

impl Future for Receipt {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(result) => Poll::Ready(result.take().unwrap_or(Err(StoreError::Lost))),
            State::Waiting(receiver) => {
                Pin::new(receiver).poll(context).map(|result| result.unwrap_or(Err(StoreError::Lost)))
            }
        }
    }
}
