//! [`Calls`]: the limits of concurrent calls, and the end of calls when the server is closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::runner::RunOptions;

/// How long cancelled calls may take to write their records.
const RECORDS: Duration = Duration::from_secs(5);

/// The calls of a server, of all its clients together.
pub(super) struct Calls {
    room: Arc<Semaphore>,
    /// The permits of subscriptions and held requests, which have the same limit as calls.
    listeners: Arc<Semaphore>,
    /// The permit of the search for calls of dead servers.
    tending: Arc<Semaphore>,
    max: u32,
    /// The number of calls and subscriptions of each principal.
    shares: Shares,
    closing: CancellationToken,
    stopped: CancellationToken,
    closed: CancellationToken,
}

/// The number of calls of each principal of a tenant, and the maximum for one principal.
#[derive(Clone)]
struct Shares {
    taken: Arc<Mutex<HashMap<Party, usize>>>,
    each: usize,
}

type Party = (Option<Arc<str>>, Option<Arc<str>>);

impl Shares {
    fn taken(&self) -> MutexGuard<'_, HashMap<Party, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit of a call or a subscription. Dropping it returns the permit.
pub(super) struct Room {
    _permit: OwnedSemaphorePermit,
    shares: Shares,
    party: Option<Party>,
}

impl Room {
    /// Counts the permit towards the limit of its principal, which leaves room for other principals.
    pub(super) fn of(mut self, party: &RunOptions) -> Result<Self, Full> {
        let party = party.named_party();
        let mut taken = self.shares.taken();
        let count = taken.entry(party.clone()).or_default();
        if *count >= self.shares.each {
            return Err(Full::Busy);
        }
        *count += 1;
        drop(taken);
        self.party = Some(party);
        Ok(self)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(party) = self.party.take() else { return };
        let mut taken = self.shares.taken();
        if let Some(count) = taken.get_mut(&party) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&party);
            }
        }
    }
}

/// The reason why a call must not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Busy,
    Closing,
}

impl Calls {
    pub(super) fn new(max: usize, each: usize) -> Self {
        let max = u32::try_from(max.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self {
            room: Arc::new(Semaphore::new(max as usize)),
            listeners: Arc::new(Semaphore::new(max as usize)),
            tending: Arc::new(Semaphore::new(1)),
            max,
            shares: Shares { taken: Arc::default(), each },
            closing: CancellationToken::new(),
            stopped: CancellationToken::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Lets a call begin. It counts until the returned `Room` is dropped.
    pub(super) fn begin(&self) -> Result<Room, Full> {
        if self.closing.is_cancelled() {
            return Err(Full::Closing);
        }
        self.room(&self.room)
    }

    /// Lets a subscription begin, or a request be held. It counts until the returned `Room` is dropped.
    pub(super) fn listen(&self) -> Result<Room, Full> {
        self.room(&self.listeners)
    }

    /// Lets the search for calls of dead servers begin, in parallel with the calls of clients. It counts until the
    /// returned `Room` is dropped.
    pub(super) fn tend(&self) -> Result<Room, Full> {
        if self.closing.is_cancelled() { Err(Full::Closing) } else { self.room(&self.tending) }
    }

    fn room(&self, of: &Arc<Semaphore>) -> Result<Room, Full> {
        let permit = Arc::clone(of).try_acquire_owned().map_err(|_| Full::Busy)?;
        Ok(Room { _permit: permit, shares: self.shares.clone(), party: None })
    }

    /// Fires when the server accepts no new clients.
    pub(super) const fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Fires when running calls must end.
    pub(super) const fn stopped(&self) -> &CancellationToken {
        &self.stopped
    }

    /// Fires when connections must end.
    pub(super) const fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Refuses new calls, waits until running ones end or `grace` is over, and cancels the rest.
    pub(super) async fn close(&self, grace: Duration) {
        self.closing.cancel();
        if tokio::time::timeout(grace, self.idle()).await.is_err() {
            self.stopped.cancel();
            if tokio::time::timeout(RECORDS, self.idle()).await.is_err() {
                tracing::error!("calls of MCP clients did not end when they were cancelled");
            }
        }
        self.closed.cancel();
    }

    /// Waits until no call is running, and no subscription or held request is open.
    async fn idle(&self) {
        // All permits together are available only once each call has returned its own.
        let _ = self.room.acquire_many(self.max).await;
        let _ = self.listeners.acquire_many(self.max).await;
        let _ = self.tending.acquire().await;
    }
}
