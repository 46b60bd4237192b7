//! [`LeaseTime`]: the time at which a lease was last confirmed, and work that continues only while it is fresh.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::store::{Clock as _, StoreError, SystemClock};

/// The time at which a lease was last known to be valid, by the monotonic and the system clock of this process: the
/// suspension of a machine may stop the monotonic one.
pub(crate) struct LeaseTime(Mutex<(Instant, Timestamp)>);

impl LeaseTime {
    /// Returns the present time. Call it before the request that renews the lease, so that the lease lasts at least as
    /// long as this process assumes.
    pub(crate) fn now() -> Self {
        Self(Mutex::new((Instant::now(), SystemClock.now())))
    }

    pub(crate) fn set(&self, requested_at: &Self) {
        let requested_at = *requested_at.0.lock().unwrap_or_else(PoisonError::into_inner);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = requested_at;
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.elapsed()
    }

    /// Whether both clocks have advanced by less than this duration.
    pub(crate) fn is_within(&self, longest: Duration) -> bool {
        let (at, wall) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at.elapsed() < longest && SystemClock.now().duration_since(wall).unsigned_abs() < longest
    }

    /// Runs work that no write to the store protects: model requests and read-only calls. In a process that was stopped
    /// for longer than the lease lasts, the work continues only after `confirm` has checked the lease in
    /// the store and set this time.
    pub(crate) async fn attend<T, C: Future<Output = Result<(), StoreError>>>(
        &self,
        lease_duration: Duration,
        confirm: impl Fn() -> C,
        work: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let mut work = pin!(work);
        loop {
            let polled = poll_fn(|context| {
                if self.is_within(lease_duration) { work.as_mut().poll(context).map(Some) } else { Poll::Ready(None) }
            });
            if let Some(done) = polled.await {
                return Ok(done);
            }
            confirm().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_was_not_renewed_in_time_is_not_fresh() {
        let (renewed, half) = (LeaseTime::now(), Duration::from_secs(15));
        assert!(renewed.is_within(half));
        tokio::time::advance(half).await;
        assert!(!renewed.is_within(half), "the clock of its timers");
        renewed.set(&LeaseTime::now());
        assert!(renewed.is_within(half));
        let hour = jiff::SignedDuration::from_hours(1);
        for wall in [SystemClock.now() - hour, SystemClock.now() + hour] {
            let suspended = LeaseTime(Mutex::new((Instant::now(), wall)));
            assert!(!suspended.is_within(half), "the machine's clock jumped");
        }
    }
}
