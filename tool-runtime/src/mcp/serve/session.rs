//! [`Session`]: what one client keeps between its requests.
#![expect(deprecated, reason = "logging is part of every revision that is spoken here")]

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::model::LoggingLevel;

use crate::runner::{Run, RunOptions, ToolRunner};

/// The run of a connection, and what its client wants to be told.
pub(super) struct Session {
    run: Mutex<Option<Run>>,
    level: AtomicU8,
}

impl Session {
    pub(super) fn new() -> Self {
        Self { run: Mutex::new(None), level: AtomicU8::new(rank(LoggingLevel::Info)) }
    }

    /// The run of the session, begun by its first request; `None` for a request that acts for somebody else.
    pub(super) fn run(&self, runner: &ToolRunner, options: RunOptions) -> Option<Run> {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        match &*run {
            Some(run) => run.acts_for(&options).then(|| run.clone()),
            None => Some(run.insert(runner.run(options.ends_with_process())).clone()),
        }
    }

    pub(super) fn set_level(&self, level: LoggingLevel) {
        self.level.store(rank(level), Ordering::Relaxed);
    }

    /// The rank of the lowest level that the client wants.
    pub(super) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }
}

/// The order of severities (RFC 5424), from the least.
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
