//! The background task of one MCP server. It connects, lists tools and reconnects, one step at a time. Calls of tools
//! do not pass through it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::mcp::source::connection::Connection;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::list::list;
use crate::mcp::source::listen::Listening;
use crate::mcp::source::state::ServerState;
use crate::registration::NotReady;

/// The maximum number of orders that wait for the task.
const ORDERS: usize = 64;

/// The shortest time between two reads of the list that a server causes by reporting changed tools.
const INTERVAL: Duration = Duration::from_secs(1);

/// The first wait after a server could not be reached; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A handle to the task. The task ends when the last handle is dropped.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) state: Arc<ServerState>,
    orders: mpsc::Sender<Order>,
}

enum Order {
    /// Connects, and lists the tools, if that is due.
    Ready { need: Need, done: oneshot::Sender<Result<(), NotReady>> },
    /// Closes the connection gracefully.
    Shutdown(oneshot::Sender<()>),
}

/// How recent a list has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// A list of any age.
    Listed,
    /// A list that has not expired.
    Fresh,
    /// A list that is read now.
    Now,
}

impl Server {
    /// Starts the task. It does not connect before its first order, for example from [`begin`](Self::begin).
    pub(super) fn start(state: ServerState) -> Self {
        let state = Arc::new(state);
        let (orders, received) = mpsc::channel(ORDERS);
        tokio::spawn(Task::new(Arc::clone(&state)).run(received));
        Self { state, orders }
    }

    /// Waits until the server has answered with a list that is recent enough.
    pub(super) async fn ready(&self, need: Need) -> Result<(), NotReady> {
        let (done, answer) = oneshot::channel();
        self.orders.send(Order::Ready { need, done }).await.map_err(|_| shut_down())?;
        answer.await.map_err(|_| shut_down())?
    }

    /// Starts to connect and list, without waiting.
    pub(super) fn begin(&self) {
        let (done, _) = oneshot::channel();
        // The queue is empty before the first order, so this cannot fail.
        let _ = self.orders.try_send(Order::Ready { need: Need::Listed, done });
    }

    /// Ends the connection and the task. A connection attempt in progress does not delay this.
    pub(super) async fn shutdown(&self) {
        self.state.closing.cancel();
        let (done, ended) = oneshot::channel();
        if self.orders.send(Order::Shutdown(done)).await.is_ok() {
            let _ = ended.await;
        }
    }
}

fn shut_down() -> NotReady {
    NotReady("the source was shut down".to_owned())
}

struct Task {
    state: Arc<ServerState>,
    /// When the list was read over the open connection.
    listed: Option<Instant>,
    /// When the list has to be read again, because the server reported a change.
    due: Option<Instant>,
    listening: Listening,
    /// The number of failed attempts in a row, and the earliest time of the next one.
    failed: u32,
    next: Instant,
}

impl Task {
    fn new(state: Arc<ServerState>) -> Self {
        Self { state, listed: None, due: None, listening: Listening::default(), failed: 0, next: Instant::now() }
    }

    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let state = Arc::clone(&self.state);
        loop {
            let due = self.due;
            let is_missing = self.failed > 0 && state.is_awaited.load(Ordering::Relaxed) && !state.is_listed();
            let again = self.next;
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Ready { need, done }) => {
                        let ready = state.closing.run_until_cancelled(self.ready(need)).await;
                        // The receiver is gone if the call was dropped.
                        let _ = done.send(ready.unwrap_or_else(|| Err(shut_down())));
                    }
                    Some(Order::Shutdown(done)) => {
                        self.listening.end().await;
                        let connection = self.state.down(Some("it was shut down".to_owned()));
                        // If a call still uses the connection, the connection ends with that call.
                        if let Some(connection) = connection.and_then(Arc::into_inner) {
                            connection.shutdown().await;
                        }
                        self.state.accounts.shutdown().await;
                        let _ = done.send(());
                        return;
                    }
                    None => break,
                },
                // Reports before the due time are ignored, so any number of them causes one read per interval.
                () = self.state.hints.changed.notified(), if due.is_none() => {
                    let now = Instant::now();
                    self.due = Some(self.listed.map_or(now, |listed| now.max(listed + INTERVAL)));
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    // The state of the server keeps the failure for operators.
                    let _ = state.closing.run_until_cancelled(self.ready(Need::Now)).await;
                }
                () = sleep_until(again), if is_missing => {
                    let _ = state.closing.run_until_cancelled(self.ready(Need::Listed)).await;
                }
            }
        }
        drop(self.state.down(None));
    }

    async fn ready(&mut self, need: Need) -> Result<(), NotReady> {
        if need == Need::Listed && self.state.is_listed() {
            return Ok(());
        }
        let connection = match self.state.connection() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        if let Some(due) = self.due {
            sleep_until(due).await;
        }
        let is_fresh = self.listed.is_some_and(|listed| listed.elapsed() < self.state.limits.refresh);
        if need != Need::Now && self.due.is_none() && is_fresh {
            return Ok(());
        }
        self.due = None;
        match list(&self.state.id, &connection, self.state.limits.connect).await {
            Ok(listing) => {
                self.state.apply(listing);
                self.listed = Some(Instant::now());
                self.failed = 0;
                self.state.up(connection);
                Ok(())
            }
            Err(failure) => {
                drop(connection);
                Err(self.failed("its tools could not be listed: ", &failure).await)
            }
        }
    }

    async fn connect(&mut self) -> Result<Arc<Connection>, NotReady> {
        (self.listed, self.due, self.listening) = (None, None, Listening::default());
        if Instant::now() < self.next {
            let why = self.state.is_down().unwrap_or_default();
            return Err(NotReady(format!("the server `{}` is down: {why}; it is tried again soon", self.state.id)));
        }
        match self.state.connect().await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.listening = Listening::start(&connection, &self.state.hints).await;
                Ok(connection)
            }
            Err(failure) => Err(self.failed("", &failure).await),
        }
    }

    /// Marks the server as down, and sets the time of the next attempt.
    async fn failed(&mut self, what: &str, failure: &RequestError) -> NotReady {
        let ServerState { id, diagnostics, .. } = &*self.state;
        if matches!(failure, RequestError::Closed | RequestError::NotMcp | RequestError::NoHandshake) {
            diagnostics.settled().await;
        }
        let why = match failure.message() {
            Some(message) => format!("{what}{failure}: {}", diagnostics.plain(message)),
            None => format!("{what}{failure}"),
        };
        let stderr = diagnostics.lines().unwrap_or_default();
        tracing::warn!(server = &**id, why, stderr, "a server is down");
        let wait = FIRST_WAIT.saturating_mul(1 << self.failed.min(10)).min(LONGEST_WAIT);
        // Jitter: a wait between half and all of it keeps several processes from returning at the same moment.
        let (random, _) = Uuid::new_v4().as_u64_pair();
        let share = u32::try_from(random % 512).unwrap_or_default();
        self.next = Instant::now() + wait / 2 + (wait / 1024) * share;
        self.failed = self.failed.saturating_add(1);
        (self.listed, self.listening) = (None, Listening::default());
        drop(self.state.down(Some(why)));
        NotReady(format!("the server `{}`: {what}{failure}", self.state.id))
    }
}
