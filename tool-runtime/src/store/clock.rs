//! The time of day, as records and pending calls need it. No other file reads the wall clock.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::store::{
    AuditRecord, ChangeFn, Key, Query, RecordFilter, SealedRecord, Store, StoreError, StoredDocument, Transaction,
    WriteHandle,
};

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
///
/// ```
/// use tool_runtime::store::{Clock, SystemClock};
///
/// assert!(SystemClock.now() > "2020-01-01T00:00:00Z".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The machine's clock, corrected by the clock of the store, so that all processes that share the store date alike.
///
/// It is left alone while the two differ by less than a second, so that times of one process keep their order.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    /// How far the store's clock is ahead, in microseconds.
    ahead: AtomicI64,
}

/// By how much a clock may differ and count as right; a time of the store that is older than this says nothing.
const NEAR: Duration = Duration::from_secs(1);

impl StoreClock {
    /// Takes over the store's time.
    fn note(&self, theirs: Timestamp) {
        let ahead = theirs.as_microsecond().saturating_sub(Timestamp::now().as_microsecond());
        let near = i64::try_from(NEAR.as_micros()).unwrap_or(i64::MAX);
        let wanted = if ahead.saturating_abs() < near { 0 } else { ahead };
        if wanted.saturating_sub(self.ahead.load(Ordering::Relaxed)).saturating_abs() >= near {
            self.ahead.store(wanted, Ordering::Relaxed);
        }
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

/// A store by whose transactions a clock is put right.
pub(crate) struct Timed {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<StoreClock>,
}

#[async_trait]
impl Store for Timed {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.store.append(record)
    }

    fn update(&self, keys: Vec<Key>, mut change: ChangeFn) -> WriteHandle {
        let (clock, asked) = (Arc::clone(&self.clock), Instant::now());
        let timed = move |transaction: &mut Transaction| {
            // A process that was stopped meanwhile would take an old time for the present one.
            if asked.elapsed() < NEAR {
                clock.note(transaction.now());
            }
            change(transaction)
        };
        self.store.update(keys, Box::new(timed))
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.store.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        self.store.list(query).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.store.records(filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let asked = Instant::now();
        let now = self.store.now().await?;
        if asked.elapsed() < NEAR {
            self.clock.note(now);
        }
        Ok(now)
    }

    async fn changed(&self) {
        self.store.changed().await;
    }
}

/// How far the clocks of two machines may differ.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

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
