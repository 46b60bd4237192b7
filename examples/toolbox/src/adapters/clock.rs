//! The system's clock.

use office_tools::time::Clock;

/// Returns the time of this machine.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}
