//! The time of day for records and pending calls. No other file reads the wall clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use crate::store::{
    AuditRecord, ChangeFn, DueRun, Key, Query, QueueDepth, RecordFilter, SealedRecord, Store, StoreError,
    StoredDocument, Transaction, WriteHandle,
};

/// A source of wall-clock time. The library calls it inline, so it must not block. If it panics, the system's clock is
/// used instead.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tool_runtime::store::Clock;
/// use tool_runtime::testing::ManualClock;
///
/// let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse()?));
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().to_string(), "2026-01-01T00:01:00Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

impl dyn Clock {
    /// Returns the machine's clock, which is the default of stores. It is also the default of runners, which correct it
    /// by the time of their store.
    ///
    /// ```
    /// use tool_runtime::store::Clock;
    ///
    /// assert!(<dyn Clock>::system().now() > "2020-01-01T00:00:00Z".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn system() -> &'static Self {
        &SystemClock
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The machine's clock, corrected by the clock of the store, so that all processes that share the store agree on the
/// time.
///
/// The correction stays the same while this clock and the store's differ by less than a second, so that the times of
/// one process stay in order.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    /// How far the store's clock is ahead of the machine's, in microseconds.
    ahead: AtomicI64,
    /// The moment at which the store's time was last read. `None` if it was not read yet, or if the machine's clock was
    /// set while it was read.
    known: Mutex<Option<Moment>>,
}

/// The difference below which a clock is treated as correct, in microseconds.
const NEAR: i64 = 1_000_000;

impl StoreClock {
    /// Corrects this clock with the store's time `theirs`, which the store read after the moment `asked`.
    fn note(&self, asked: &Moment, theirs: Timestamp) {
        let now = Moment::now();
        self.correct(theirs.as_microsecond(), now.1.as_microsecond(), asked.elapsed(&now));
        // If the machine's clock was set meanwhile, the answer is not reliable.
        let known = (!asked.was_set(&now)).then_some(now);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Changes the correction, unless it is consistent with the answer. All times are in microseconds.
    ///
    /// The store read its clock at most `elapsed` ago. The store's clock is therefore ahead by at least `least`, and by
    /// at most `least + elapsed`. Even a slow answer corrects a clock whose error is larger than the delay of the
    /// answer.
    fn correct(&self, theirs: i64, now: i64, elapsed: i64) {
        let (least, ahead) = (theirs.saturating_sub(now), self.ahead.load(Ordering::Relaxed));
        let nearest = ahead.clamp(least, least.saturating_add(elapsed.max(0)));
        if ahead.abs_diff(nearest) >= NEAR.unsigned_abs() {
            let wanted = if nearest.unsigned_abs() < NEAR.unsigned_abs() { 0 } else { nearest };
            self.ahead.store(wanted, Ordering::Relaxed);
        }
    }
}

/// A moment, by the machine's timer and by its clock.
#[derive(Debug)]
struct Moment(Instant, Timestamp);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), Timestamp::now())
    }

    /// Returns the microseconds from this moment until `later`, by the timer and by the clock.
    fn until(&self, later: &Self) -> (i64, i64) {
        let timer = i64::try_from(later.0.saturating_duration_since(self.0).as_micros()).unwrap_or(i64::MAX);
        (timer, later.1.as_microsecond().saturating_sub(self.1.as_microsecond()))
    }

    /// Returns the longest time that may have passed until `later`, in microseconds. A suspended machine stops its
    /// timer, but not its clock.
    fn elapsed(&self, later: &Self) -> i64 {
        let (timer, clock) = self.until(later);
        timer.max(clock)
    }

    /// Whether the machine's clock and its timer moved by different amounts until `later`, because the clock was set or
    /// the machine was suspended. A clock that is adjusted gradually gains or loses at most one part in a thousand.
    fn was_set(&self, later: &Self) -> bool {
        let (timer, clock) = self.until(later);
        clock.abs_diff(timer) >= NEAR.saturating_add(timer / 1000).unsigned_abs()
    }
}

impl StoreClock {
    /// Whether the store's time has been read, and the machine's clock has not been set since. Otherwise this clock can
    /// differ from the store's.
    pub(crate) fn is_known(&self) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|known| !known.was_set(&Moment::now()))
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        match self.ahead.load(Ordering::Relaxed) {
            0 => now,
            ahead => now.checked_add(SignedDuration::from_micros(ahead)).unwrap_or(now),
        }
    }
}

/// A store whose transactions correct a clock. The first read, and the first read after the machine's clock was set,
/// also request the store's time. A process therefore never compares stored times with a wrong clock.
pub(crate) struct Timed {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<StoreClock>,
}

impl Timed {
    /// Requests the store's time if it is not known. After a failed request, the next read requests it again.
    async fn ask(&self) {
        if !self.clock.is_known() {
            drop(self.now().await);
        }
    }
}

#[async_trait]
impl Store for Timed {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.store.append(record)
    }

    fn update(&self, keys: Vec<Key>, mut change: ChangeFn) -> WriteHandle {
        let (clock, asked) = (Arc::clone(&self.clock), Moment::now());
        let timed = move |transaction: &mut Transaction| {
            clock.note(&asked, transaction.now());
            change(transaction)
        };
        self.store.update(keys, Box::new(timed))
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.ask().await;
        self.store.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        self.ask().await;
        self.store.list(query).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.ask().await;
        self.store.records(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let asked = Moment::now();
        let now = self.store.now().await?;
        self.clock.note(&asked, now);
        Ok(now)
    }

    async fn changed(&self) {
        self.store.changed().await;
    }

    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        self.store.due_runs(now, lane, limit).await
    }

    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        self.store.lanes(now, after, limit).await
    }

    async fn depth(&self, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
        self.store.depth(now, tenant).await
    }
}

/// The largest usual difference between the clocks of two machines.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Whether `now` is earlier than `made` by more than clocks usually differ. The clock is then wrong, so an expiry time
/// that was derived from `made` cannot be checked with it.
pub(crate) fn is_before(now: Timestamp, made: Timestamp) -> bool {
    now < made.checked_sub(SKEW).unwrap_or(made)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::ManualClock;

    #[test]
    fn a_clock_is_put_right_however_long_the_answer_took() {
        const SECOND: i64 = 1_000_000;
        let clock = StoreClock::default();
        for (ahead, elapsed, least, most) in [
            // Within the tolerance.
            (0, 0, 0, 0),
            (SECOND / 2, SECOND / 10, 0, 0),
            (-SECOND / 2, 0, 0, 0),
            // 40 seconds behind, with an answer that took five.
            (40 * SECOND, 5 * SECOND, 40 * SECOND, 45 * SECOND),
            // The process was stopped for an hour, so the answer does not contradict its clock.
            (40 * SECOND - 3_600 * SECOND, 3_600 * SECOND, 40 * SECOND, 45 * SECOND),
            // The next answer is exact.
            (40 * SECOND, 0, 40 * SECOND, 40 * SECOND),
            (40 * SECOND + SECOND / 2, 0, 40 * SECOND, 40 * SECOND),
            (-3_600 * SECOND, 0, -3_600 * SECOND, -3_600 * SECOND),
            (0, 0, 0, 0),
        ] {
            clock.correct(ahead, 0, elapsed);
            let set = clock.ahead.load(Ordering::Relaxed);
            assert!((least..=most).contains(&set), "{ahead} {elapsed}: {set}");
        }
    }

    #[test]
    fn a_clock_that_is_set_is_not_known_any_more() {
        let (start, hour) = (Moment::now(), Duration::from_secs(3600));
        let later = |wall: Duration| Moment(start.0 + hour, start.1 + SignedDuration::try_from(wall).unwrap());
        assert!(!start.was_set(&later(hour)) && !start.was_set(&later(hour + Duration::from_secs(3))));
        assert!(start.was_set(&later(hour + Duration::from_secs(5))), "it was set forward");
        assert!(start.was_set(&later(Duration::from_secs(3595))), "it was set back");

        let clock = StoreClock::default();
        assert!(!clock.is_known());
        clock.note(&Moment::now(), Timestamp::now());
        assert!(clock.is_known());
        // As if the clock had been set since.
        let day = SignedDuration::from_hours(24);
        *clock.known.lock().unwrap() = Some(Moment(Instant::now(), Timestamp::now() - day));
        assert!(!clock.is_known());
    }

    #[tokio::test]
    async fn the_first_read_asks_for_the_time() {
        let day = SignedDuration::from_hours(24);
        let theirs = ManualClock::at(Timestamp::now() + day);
        let store = Arc::new(crate::store::MemoryStore::with_clock(theirs));
        let timed = Timed { store, clock: Arc::default() };
        assert!(!timed.clock.is_known());
        timed.read(&[Key::digest_key()]).await.unwrap();
        assert!(timed.clock.is_known());
        let ahead = timed.clock.now().duration_since(Timestamp::now());
        assert!((day - ahead).abs() < SignedDuration::from_hours(1), "{ahead}");
    }
}
