//! Progress of work that takes longer than a moment, on a terminal only.

use std::time::{Duration, Instant};

use crate::cli::terminal;

const FIRST: Duration = Duration::from_millis(800);
const EVERY: Duration = Duration::from_millis(200);

/// Counts what is done.
pub(super) struct Progress {
    what: &'static str,
    total: usize,
    done: usize,
    next: Option<Instant>,
}

impl Progress {
    /// Progress of `total` pieces of work. It is shown once the work takes longer than a moment.
    pub(super) fn new(what: &'static str, total: usize) -> Self {
        Self { what, total, done: 0, next: terminal::is_watched().then(|| Instant::now() + FIRST) }
    }

    /// One piece is done.
    pub(super) fn step(&mut self) {
        self.done += 1;
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + EVERY);
            terminal::progress(&format!("{} of {} {}", self.done, self.total, self.what));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        terminal::clear_progress();
    }
}
