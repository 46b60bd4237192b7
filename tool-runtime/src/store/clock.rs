//! The time of day, as records and pending calls need it. No other file reads the wall clock.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

/// A source of wall-clock time. Called inline: do not block. If it panics, the system's clock is asked instead.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tool_runtime::store::{Clock, ManualClock};
///
/// let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse()?));
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().to_string(), "2026-01-01T00:01:00Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// How far the clocks of two machines may differ.
const SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(1);

/// Whether a clock is behind the one by which something was made, by more than clocks differ: then the time at which that
/// ends means nothing.
pub(crate) fn is_before(now: Timestamp, made: Timestamp) -> bool {
    now < made.checked_sub(SKEW).unwrap_or(made)
}

/// A clock that shows one time until it is moved, for tests and replays.
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self(Mutex::new(now))
    }

    /// Moves the clock forward; it stops at the last timestamp there is.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by).unwrap_or(Timestamp::MAX);
    }

    /// Sets the clock.
    pub fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({})", self.now())
    }
}
