//! [`Strict`]: a transport of one client that answers requests which `rmcp` would leave unanswered.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientNotification, ClientRequest, ErrorData, GetExtensions as _, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use crate::mcp::serve::delivery::{Delivery, Sending};
use crate::mcp::serve::raw::{self, MAX_MESSAGE_BYTES};

/// How many ids of cancelled requests are remembered.
const CANCELLED: usize = 1_024;

/// A transport that refuses a request if its id is in use, or if it is too long.
pub(super) struct Strict<T> {
    transport: T,
    requests: Arc<Mutex<Requests>>,
}

/// The ids in use.
#[derive(Default)]
struct Requests {
    /// The unanswered requests, with the delivery of each answer.
    running: HashMap<RequestId, Sending>,
    /// The ids of the last requests that were cancelled. `rmcp` looks for the end of a cancelled call by its id, so a
    /// second request with that id would get the answer of the first.
    cancelled: VecDeque<RequestId>,
}

impl<T> Strict<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, requests: Arc::default() }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id and the error for a request that must be refused. `None` for a message that may be passed on.
    fn refused(&self, message: &mut RxJsonRpcMessage<RoleServer>) -> Option<(RequestId, ErrorData)> {
        match message {
            JsonRpcMessage::Request(request) => {
                if matches!(&request.request, ClientRequest::CustomRequest(custom) if raw::is_too_long(&custom.method))
                {
                    return Some((request.id.clone(), too_long()));
                }
                let Requests { running, cancelled } = &mut *self.requests();
                if running.contains_key(&request.id) || cancelled.contains(&request.id) {
                    return Some((request.id.clone(), repeated()));
                }
                let delivery = Delivery::begin();
                request.request.extensions_mut().insert(delivery.clone());
                running.insert(request.id.clone(), Sending(delivery));
                None
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    let Requests { running, cancelled } = &mut *self.requests();
                    // A cancelled request gets no answer.
                    if running.remove(id).is_some() {
                        cancelled.truncate(CANCELLED - 1);
                        cancelled.push_front(id.clone());
                    }
                }
                None
            }
            _ => None,
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Strict<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sending = match &item {
            JsonRpcMessage::Response(response) => self.requests().running.remove(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.requests().running.remove(id)),
            _ => None,
        };
        let sent = self.transport.send(item);
        async move {
            let sent = sent.await;
            if let Some(Sending(delivery)) = &sending {
                delivery.ended(sent.is_ok());
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(mut message) = self.transport.receive().await else {
                // The client has closed its sending side, but may still read answers.
                self.requests().running.values().for_each(|Sending(delivery)| delivery.leave());
                return None;
            };
            let Some((id, error)) = self.refused(&mut message) else { return Some(message) };
            // In a separate task, so that the answer is sent even if this future is dropped.
            tokio::spawn(self.transport.send(JsonRpcMessage::error(error, Some(id))));
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

fn too_long() -> ErrorData {
    ErrorData::invalid_request(format!("The message is longer than {MAX_MESSAGE_BYTES} bytes."), None)
}

/// Returns the error for a request whose id is in use.
pub(super) fn repeated() -> ErrorData {
    ErrorData::invalid_request("A request with this id has no answer yet, or was cancelled.", None)
}
