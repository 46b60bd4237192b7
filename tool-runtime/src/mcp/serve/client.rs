//! The capabilities that a client offers to its call, and the messages that the running call sends to the client.
#![expect(deprecated, reason = "logging and sampling are part of every revision that this server supports")]

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::capability::{Capabilities, Elicit, Progress, Sample};
use crate::mcp::serve::session::{Session, rank};
use crate::runner::Run;

mod asks;
#[cfg(test)]
mod tests;

use asks::Asks;
pub(super) use asks::{filled, fills_in_forms};

type Peer = rmcp::service::Peer<RoleServer>;

/// The shortest time between two reports of progress.
const REPORTS: Duration = Duration::from_millis(20);

/// The maximum number of messages that wait to be sent. Further messages are dropped.
const WAITING: usize = 64;

/// How long the last messages of a call may delay the answer to the call.
const LAST: Duration = Duration::from_secs(1);

/// The capabilities that the client of a request offers to its call.
#[derive(Default)]
pub(super) struct Offers {
    pub(super) all: Capabilities,
    /// The progress and elicitation capabilities of `all`, for use by the server itself.
    pub(super) progress: Option<Arc<dyn Progress>>,
    pub(super) elicit: Option<Arc<dyn Elicit>>,
}

/// The messages of one call on their way to its client.
pub(super) struct Outbox {
    peer: Peer,
    queue: Arc<Queue>,
    logger: String,
}

impl Outbox {
    /// Returns the capabilities that the client of a request offers to its call, and the outbox of the call's messages.
    pub(super) fn of(
        run: &Run,
        session: &Session,
        context: &RequestContext<RoleServer>,
        logger: &str,
    ) -> (Offers, Self) {
        let modern =
            context.protocol_version().is_some_and(|one| one.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        // Since 2026-07-28 each request sets its log level; without one it gets no log messages.
        let wanted = if modern { context.meta.log_level().map(rank) } else { Some(session.level()) };
        let queue = Arc::new(Queue::default());
        let mut offers = Offers::default();
        let token = context.meta.get_progress_token();
        let (has_token, application) = (token.is_some(), run.adapter::<dyn Progress>());
        let reports: Arc<dyn Progress> = Arc::new(Reports { queue: Arc::clone(&queue), token, wanted, application });
        offers.all = offers.all.with::<dyn Progress>(Arc::clone(&reports));
        offers.progress = has_token.then_some(reports);
        // Since 2026-07-28 a server sends no requests while a call runs.
        if let Some(declared) = context.client_capabilities().filter(|_| !modern) {
            let asks = || Asks { peer: context.peer.clone(), run: run.clone() };
            if fills_in_forms(&declared) {
                let elicit: Arc<dyn Elicit> = Arc::new(asks());
                offers.all = offers.all.with::<dyn Elicit>(Arc::clone(&elicit));
                offers.elicit = Some(elicit);
            }
            if declared.sampling.is_some() {
                offers.all = offers.all.with::<dyn Sample>(Arc::new(asks()));
            }
        }
        (offers, Self { peer: context.peer.clone(), queue, logger: logger.to_owned() })
    }

    pub(super) fn quiet(&self) -> Quiet {
        Quiet(Arc::clone(&self.queue))
    }

    /// Sends messages while `work` runs, and the remaining messages when it has ended. Later messages are dropped.
    pub(super) async fn during<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut sending = pin!(self.send());
        let ended = tokio::select! {
            biased;
            ended = &mut work => ended,
            () = &mut sending => return work.await,
        };
        self.queue.close();
        // The limit keeps a client that does not read its messages from delaying its answer.
        let _ = tokio::time::timeout(LAST, sending).await;
        ended
    }

    async fn send(&self) {
        while let Some(message) = self.queue.next().await {
            let sent = match message {
                Message::Report { token, done, total } => {
                    let mut report = ProgressNotificationParam::new(token, done);
                    report.total = total;
                    self.peer.notify_progress(report).await
                }
                Message::Line { level, line } => {
                    let line = LoggingMessageNotificationParam::new(level, Value::from(line));
                    self.peer.notify_logging_message(line.with_logger(self.logger.as_str())).await
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

/// Stops the messages of a call while the call continues.
pub(super) struct Quiet(Arc<Queue>);

impl Quiet {
    pub(super) fn close(&self) {
        self.0.close();
    }
}

enum Message {
    Report { token: ProgressToken, done: f64, total: Option<f64> },
    Line { level: LoggingLevel, line: &'static str },
}

#[derive(Default)]
struct Queue {
    state: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Message>,
    /// The number in the last report, and the time when a report was last sent.
    reported: Option<(f64, Instant)>,
    /// A report that came too soon after the last one. It is sent if no other report follows.
    held: Option<Message>,
    closed: bool,
}

impl Waiting {
    fn push(&mut self, message: Message) {
        if !self.closed && self.messages.len() < WAITING {
            self.messages.push_back(message);
        }
    }
}

impl Queue {
    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    fn close(&self) {
        self.change(|waiting| {
            if let Some(held) = waiting.held.take() {
                waiting.push(held);
            }
            waiting.closed = true;
        });
    }

    /// Returns the next message; `None` once the queue is closed and empty.
    async fn next(&self) -> Option<Message> {
        loop {
            {
                let mut waiting = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(message) = waiting.messages.pop_front() {
                    return Some(message);
                }
                if waiting.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

struct Reports {
    queue: Arc<Queue>,
    /// `None` if the client wants no reports.
    token: Option<ProgressToken>,
    /// The rank of the lowest level of lines that the client wants; `None` if it wants none.
    wanted: Option<u8>,
    /// The application's adapter, which gets the reports or lines if the client wants none.
    application: Option<Arc<dyn Progress>>,
}

impl Progress for Reports {
    fn report(&self, done: f64, total: Option<f64>) {
        let Some(token) = &self.token else {
            self.application.iter().for_each(|application| application.report(done, total));
            return;
        };
        let total = total.filter(|total| total.is_finite());
        self.queue.change(|waiting| {
            let before = waiting.reported;
            if !done.is_finite() || before.is_some_and(|(before, _)| done <= before) {
                return;
            }
            let (now, report) = (Instant::now(), Message::Report { token: token.clone(), done, total });
            match before {
                Some((_, sent)) if now.duration_since(sent) < REPORTS => {
                    // Too soon after the last one sent: hold this report, in place of an earlier held one.
                    waiting.reported = Some((done, sent));
                    waiting.held = Some(report);
                }
                _ => {
                    waiting.reported = Some((done, now));
                    waiting.held = None;
                    waiting.push(report);
                }
            }
        });
    }

    fn notice(&self, level: tracing::Level, line: &'static str) {
        let Some(wanted) = self.wanted else {
            self.application.iter().for_each(|application| application.notice(level, line));
            return;
        };
        let level = match level {
            tracing::Level::ERROR => LoggingLevel::Error,
            tracing::Level::WARN => LoggingLevel::Warning,
            tracing::Level::INFO => LoggingLevel::Info,
            tracing::Level::DEBUG | tracing::Level::TRACE => LoggingLevel::Debug,
        };
        if rank(level) >= wanted {
            self.queue.change(|waiting| waiting.push(Message::Line { level, line }));
        }
    }
}
