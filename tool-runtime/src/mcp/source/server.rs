//! The task of one server: it connects, lists and reconnects, one thing at a time. Calls go past it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::mcp::source::connection::Connection;
use crate::mcp::source::list::list;
use crate::mcp::source::listen::Listening;
use crate::mcp::source::state::State;
use crate::registration::NotReady;

/// Orders that may wait.
const ORDERS: usize = 64;

/// The shortest time between two lists that a server asks for by saying that its tools changed.
const INTERVAL: Duration = Duration::from_secs(1);

/// The first wait after a server could not be reached; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A handle to the task, which ends with the last of them.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) state: Arc<State>,
    orders: mpsc::Sender<Order>,
}

enum Order {
    /// Connects and lists where that is due.
    Ready { force: bool, done: oneshot::Sender<Result<(), NotReady>> },
    /// Ends the connection in order.
    Shutdown(oneshot::Sender<()>),
}

impl Server {
    /// Starts the task. Nothing is connected before the first order.
    pub(super) fn start(state: State) -> Self {
        let state = Arc::new(state);
        let (orders, received) = mpsc::channel(ORDERS);
        tokio::spawn(Task::new(Arc::clone(&state)).run(received));
        Self { state, orders }
    }

    /// Waits until the server answers and its list counts; with `force` it is read in any case.
    pub(super) async fn ready(&self, force: bool) -> Result<(), NotReady> {
        let gone = || NotReady("the source was shut down".to_owned());
        let (done, answer) = oneshot::channel();
        self.orders.send(Order::Ready { force, done }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Ends the connection and the task.
    pub(super) async fn shutdown(&self) {
        let (done, ended) = oneshot::channel();
        if self.orders.send(Order::Shutdown(done)).await.is_ok() {
            let _ = ended.await;
        }
    }
}

struct Task {
    state: Arc<State>,
    /// When the list was read from the connection that is open.
    listed: Option<Instant>,
    /// When the list has to be read again, because the server said so.
    due: Option<Instant>,
    listening: Listening,
    /// Attempts to connect that failed in a row, and when the next may be made.
    failed: u32,
    next: Instant,
}

impl Task {
    fn new(state: Arc<State>) -> Self {
        Self { state, listed: None, due: None, listening: Listening::default(), failed: 0, next: Instant::now() }
    }

    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        loop {
            let due = self.due;
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Ready { force, done }) => {
                        let ready = self.ready(force).await;
                        // The call may have been dropped.
                        let _ = done.send(ready);
                    }
                    Some(Order::Shutdown(done)) => {
                        self.listening.end().await;
                        let connection = self.state.down(Some("it was shut down".to_owned()));
                        // A connection that a call still uses ends with the call.
                        if let Some(connection) = connection.and_then(Arc::into_inner) {
                            connection.shutdown().await;
                        }
                        self.state.accounts.shutdown().await;
                        let _ = done.send(());
                        return;
                    }
                    None => break,
                },
                // However often a server says it, its list is read once in each interval.
                () = self.state.hints.changed.notified(), if due.is_none() => {
                    let now = Instant::now();
                    self.due = Some(self.listed.map_or(now, |listed| now.max(listed + INTERVAL)));
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    // Operators learn from the state of the server why it failed.
                    let _ = self.ready(true).await;
                }
            }
        }
        drop(self.state.down(None));
    }

    async fn ready(&mut self, force: bool) -> Result<(), NotReady> {
        let connection = match self.state.connection() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        if let Some(due) = self.due {
            sleep_until(due).await;
        }
        let is_fresh = self.listed.is_some_and(|listed| listed.elapsed() < self.state.limits.refresh);
        if !force && self.due.is_none() && is_fresh {
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
            Err(failure) => Err(self.failed(&format!("its tools could not be listed: {failure}"))),
        }
    }

    async fn connect(&mut self) -> Result<Arc<Connection>, NotReady> {
        (self.listed, self.due, self.listening) = (None, None, Listening::default());
        if Instant::now() < self.next {
            let why = self.state.note().unwrap_or_default();
            return Err(NotReady(format!("the server `{}` is {why}; it is tried again soon", self.state.id)));
        }
        let State { id, reach, http, limits, hints, .. } = &*self.state;
        match Connection::open(id, reach, http.as_ref(), limits, hints).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.listening = Listening::start(&connection, hints).await;
                Ok(connection)
            }
            Err(failure) => Err(self.failed(&failure.to_string())),
        }
    }

    /// Marks the server as down, and says when it may be tried again.
    fn failed(&mut self, why: &str) -> NotReady {
        let wait = FIRST_WAIT.saturating_mul(1 << self.failed.min(10)).min(LONGEST_WAIT);
        // Several processes do not come back at the same moment: the wait is between half of it and all.
        let (random, _) = Uuid::new_v4().as_u64_pair();
        let share = u32::try_from(random % 512).unwrap_or_default();
        self.next = Instant::now() + wait / 2 + (wait / 1024) * share;
        self.failed = self.failed.saturating_add(1);
        (self.listed, self.listening) = (None, Listening::default());
        tracing::warn!(server = &*self.state.id, why, "a server is down");
        drop(self.state.down(Some(why.to_owned())));
        NotReady(format!("the server `{}`: {why}", self.state.id))
    }
}
