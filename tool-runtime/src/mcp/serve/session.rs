//! [`Session`]: the state of one client between its requests.
#![expect(deprecated, reason = "logging is part of every revision that this server supports")]

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::LoggingLevel;
use tokio::time::Instant;

use crate::runner::ServedRun;
use crate::runner::{Run, RunOptions, ToolRunner};

/// The run of a connection, and the log level that its client wants.
pub(super) struct Session {
    /// The run of the session, and the time when it began.
    run: Mutex<Option<(Run, Instant)>>,
    level: AtomicU8,
    /// Whether the client has requested a list.
    has_listed: AtomicBool,
}

impl Session {
    pub(super) fn new() -> Self {
        let level = AtomicU8::new(rank(LoggingLevel::Info));
        Self { run: Mutex::new(None), level, has_listed: AtomicBool::new(false) }
    }

    /// Returns the run of the session. The first request begins it. `None` for a request that acts for another party.
    ///
    /// The connection of a desktop application can last for days, so a run lasts only for `window`, or until it has had
    /// many calls. The next run takes over the labels of the data that the model has read.
    pub(super) fn run(&self, runner: &ToolRunner, options: RunOptions, window: Duration) -> Option<Run> {
        let mut kept = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &*kept {
            Some((run, _)) if !ServedRun(run).acts_for(&options) => return None,
            Some((run, since)) if since.elapsed() < window && !ServedRun(run).is_long() => return Some(run.clone()),
            before => before.as_ref().map(|(run, _)| run.clone()),
        };
        let run = runner.run(options.ends_with_process());
        if let Some(before) = before {
            ServedRun(&run).take_labels_of(&before);
        }
        Some(kept.insert((run, Instant::now())).0.clone())
    }

    /// Handles the end of a call of `run`. If the session has a newer run, that run takes over the labels of `run`.
    pub(super) fn on_call_end(&self, run: &Run) {
        let kept = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((now, _)) = &*kept {
            ServedRun(now).take_labels_of(run);
        }
    }

    /// Whether this is the client's first request for a list.
    pub(super) fn is_first_list(&self) -> bool {
        !self.has_listed.swap(true, Ordering::Relaxed)
    }

    pub(super) fn set_level(&self, level: LoggingLevel) {
        self.level.store(rank(level), Ordering::Relaxed);
    }

    /// Returns the rank of the lowest log level that the client wants.
    pub(super) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }
}

/// Returns the rank of a severity (RFC 5424). The lowest severity has the rank 0.
pub(super) const fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
