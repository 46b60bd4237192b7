//! Subscribes to changes of a server's tools: with a request in the revision without a handshake, or with the GET
//! stream of an HTTP session.
//!
//! A notification enables no tool. It only causes the client to read the list again, at most once in each interval. If
//! the subscription ends while the connection is open, the client opens it again after a growing wait.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::mcp::source::connection::Connection;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::hints::Hints;

/// How long the first list waits for the subscription, so that no change between the two is missed.
const ACKNOWLEDGED: Duration = Duration::from_secs(1);

/// The first wait before a subscription that ended is opened again; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait. After a subscription has lasted this long, the waits start again from the first.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// JSON-RPC's code for a method that the server does not have.
const METHOD_NOT_FOUND: i64 = -32601;

/// The subscription of a connection. It ends when this value is dropped.
#[derive(Default)]
pub(super) struct Listening(JoinSet<()>);

impl Listening {
    /// Opens the subscription of a connection, if its server offers one. Returns once the server has acknowledged it,
    /// or after a time limit.
    pub(super) async fn start(connection: &Arc<Connection>, hints: &Arc<Hints>) -> Self {
        let mut task = JoinSet::new();
        if connection.has_subscriptions() {
            let (settled, first) = oneshot::channel();
            task.spawn(listen(Arc::clone(connection), Arc::clone(hints), settled));
            // If the acknowledgement comes after the limit, the list is read again then.
            let _ = timeout(ACKNOWLEDGED, first).await;
        }
        Self(task)
    }

    /// Ends the subscription and waits until it no longer uses the connection.
    pub(super) async fn end(&mut self) {
        self.0.shutdown().await;
    }
}

/// Keeps a subscription open, and reopens it when it ends. `settled` receives the first acknowledgement.
async fn listen(connection: Arc<Connection>, hints: Arc<Hints>, settled: oneshot::Sender<()>) {
    let (mut settled, mut wait) = (Some(settled), FIRST_WAIT);
    loop {
        let begun = Instant::now();
        let (acknowledged, ended) = connection.listen(&hints);
        let mut ended = pin!(ended);
        let ended = tokio::select! {
            ended = &mut ended => ended,
            Ok(of_tools) = acknowledged => {
                if !of_tools {
                    return;
                }
                if settled.take().is_none_or(|settled| settled.send(()).is_err()) {
                    // Changes between two subscriptions were not reported, so assume one.
                    hints.changed.notify_one();
                }
                ended.await
            }
        };
        if connection.is_closed() || is_final(&ended) {
            return;
        }
        if begun.elapsed() > LONGEST_WAIT {
            wait = FIRST_WAIT;
        }
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Whether a subscription ended because the server does not support subscriptions, although it may have declared them.
const fn is_final(ended: &Result<Box<str>, RequestError>) -> bool {
    match ended {
        Err(RequestError::Refused { code, .. }) => *code == METHOD_NOT_FOUND,
        Err(RequestError::Status(status, _)) => matches!(*status, 300..=428 | 430..=499),
        Err(RequestError::Unauthorized) => true,
        _ => false,
    }
}
