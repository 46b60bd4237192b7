//! [`Progress`]: a progress line for long work, on a terminal only.

use std::time::{Duration, Instant};

use crate::terminal;

const FIRST: Duration = Duration::from_millis(800);
const EVERY: Duration = Duration::from_millis(200);

/// A line on stderr that counts finished items. It is shown only on a terminal, and not with `--quiet`. Dropping the
/// value removes the line.
///
/// ```
/// let mut progress = tool_runtime_cli::Progress::new("files", 3);
/// for _file in 0..3 {
///     progress.step();
/// }
/// ```
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: usize,
    done: usize,
    next: Option<Instant>,
}

impl Progress {
    /// Creates the progress of `total` items; `what` is their name in the line, such as `files`. The line appears at
    /// the first finished item after 0.8 seconds, so short work shows none.
    #[must_use]
    pub fn new(what: &'static str, total: usize) -> Self {
        Self { what, total, done: 0, next: terminal::is_watched().then(|| Instant::now() + FIRST) }
    }

    /// Counts one item as finished.
    pub fn step(&mut self) {
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
