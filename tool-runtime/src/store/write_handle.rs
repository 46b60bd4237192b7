//! [`WriteHandle`]: a future that resolves once a write is stored.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::store::StoreError;

/// Resolves once a write is stored or could not be stored. The write continues if the handle is dropped.
///
/// ```
/// use tool_runtime::ToolInvocationRecord;
/// use tool_runtime::store::{MemoryStore, Store};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let first = store.append(ToolInvocationRecord::example("run-1", "call_1").into());
/// let second = store.append(ToolInvocationRecord::example("run-1", "call_2").into());
/// // Both writes have begun.
/// first.await?;
/// second.await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "await it, or drop it on purpose"]
pub struct WriteHandle(WriteState);

#[derive(Debug)]
enum WriteState {
    Ready(Option<Result<(), StoreError>>),
    Waiting(oneshot::Receiver<Result<(), StoreError>>),
}

impl WriteHandle {
    /// Creates a resolved handle.
    pub const fn ready(result: Result<(), StoreError>) -> Self {
        Self(WriteState::Ready(Some(result)))
    }

    /// Creates a handle that resolves when the store's writer sends through the channel. If the sender is dropped
    /// unused, the handle resolves to [`StoreError::Lost`].
    ///
    /// ```
    /// use tokio::sync::oneshot;
    /// use tool_runtime::store::WriteHandle;
    ///
    /// let (writer, receiver) = oneshot::channel();
    /// let handle = WriteHandle::new(receiver);
    /// assert!(writer.send(Ok(())).is_ok());
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(handle)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(receiver: oneshot::Receiver<Result<(), StoreError>>) -> Self {
        Self(WriteState::Waiting(receiver))
    }

    /// Whether the write is already stored, so that no wait is needed.
    pub(crate) const fn is_kept(&self) -> bool {
        matches!(self.0, WriteState::Ready(Some(Ok(()))))
    }
}

impl Future for WriteHandle {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            WriteState::Ready(result) => Poll::Ready(result.take().unwrap_or(Err(StoreError::Lost))),
            WriteState::Waiting(receiver) => {
                Pin::new(receiver).poll(context).map(|result| result.unwrap_or(Err(StoreError::Lost)))
            }
        }
    }
}
