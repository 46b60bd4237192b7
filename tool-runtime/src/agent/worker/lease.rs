//! [`Lease`]: the lease of this process on a run, and the writes under it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::Input;
use crate::agent::worker::queue::corrupt;
use crate::runner::LeaseTime;
use crate::store::runs::{self, AfterUpdate, Due, RunUpdate};
use crate::store::transact;
use crate::store::{Document, DocumentKind, Key, Query, RunLease, Store, StoreError, StoredDocument};

/// The state of a run whose request has not ended.
pub(super) const RUNNING: &str = "running";

/// A run that this process holds under a lease, for a worker or for an application that continues it itself. Each write
/// is checked against the lease.
pub(super) struct Lease {
    pub(super) store: Arc<dyn Store>,
    pub(super) run: RunLease,
    /// The document that counts the leased runs of the tenant. `None` without a limit.
    pub(super) slots: Option<Key>,
    /// How long a write is retried while the store cannot be reached.
    pub(super) patience: Duration,
    /// The time of the lease's last renewal.
    pub(super) renewed: Arc<LeaseTime>,
}

impl Lease {
    /// Confirms that this process still has the run. Call it before a model request or a read-only call, which no write
    /// to the store protects. It uses the store only if the lease was not renewed in time, for example because the
    /// process was suspended.
    pub(super) async fn confirm(&self, lease_duration: Duration) -> Result<(), StoreError> {
        // The lease is renewed every third of its duration.
        if self.renewed.is_within(lease_duration / 2) {
            return Ok(());
        }
        prolong(&*self.store, (&self.run, self.slots.as_ref()), lease_duration, &self.renewed).await
    }

    /// Runs work that no write to the store protects: model requests and read-only calls. The lease is confirmed before
    /// the work begins, and again before it continues in a process that was suspended for longer than the lease.
    pub(super) async fn attend<T>(
        &self,
        lease_duration: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        self.confirm(lease_duration).await?;
        let confirm = || prolong(&*self.store, (&self.run, self.slots.as_ref()), lease_duration, &self.renewed);
        self.renewed.attend(lease_duration, confirm, work).await
    }

    /// Checks in the store that this process has the run.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        runs::confirm(&*self.store, &self.run).await
    }

    /// Returns [`StoredRun::news`](crate::store::StoredRun::news), the number of changes to the run by other processes.
    pub(super) async fn news(&self) -> Result<u64, StoreError> {
        match self
            .store
            .read(&[Key::run_head(Arc::clone(&self.run.run_id))])
            .await?
            .pop()
            .flatten()
            .map(|stored| stored.document)
        {
            Some(Document::Run(run)) => Ok(run.news),
            _ => Err(StoreError::Fenced),
        }
    }

    /// Returns the oldest post to the run. `None` if there is none.
    pub(super) async fn post(&self) -> Result<Option<(Key, Input)>, StoreError> {
        let query = Query { scope: Some(Arc::clone(&self.run.run_id)), limit: 1, ..Query::new(DocumentKind::Post) };
        let Some(StoredDocument { key, document: Document::Post(post), .. }) = self.store.list(&query).await?.pop()
        else {
            return Ok(None);
        };
        let input: Input = serde_json::from_str(&post.body).map_err(corrupt)?;
        Ok(Some((key, input.delivered())))
    }

    /// Releases the run. A `state` of `None` keeps the state of the last save.
    pub(super) async fn put(&self, state: Option<&str>, due: Due, news: u64, failures: u32) -> Result<(), StoreError> {
        let next = AfterUpdate::Release { due, news };
        let state = state.map(Into::into);
        self.write(RunUpdate { document: None, state, version: None, taken: None, failures, next }).await
    }

    /// Writes an update of the run.
    pub(super) async fn write(&self, update: RunUpdate) -> Result<(), StoreError> {
        let taken = update.taken.clone();
        let slots = self.slots.clone().filter(|_| matches!(update.next, AfterUpdate::Release { .. }));
        let keys: Vec<_> =
            std::iter::once(Key::run_head(Arc::clone(&self.run.run_id))).chain(taken).chain(slots).collect();
        let until = Instant::now() + self.patience;
        loop {
            let (lease, update) = (self.run.clone(), update.clone());
            let change = move |transaction: &mut _| runs::save(transaction, &lease, &update);
            match transact(&*self.store, keys.clone(), change).await {
                Err(error @ (StoreError::Unavailable(_) | StoreError::Panicked)) if Instant::now() < until => {
                    tracing::warn!(run = &*self.run.run_id, error = error.code(), "a step is not stored yet");
                    tokio::time::sleep(self.patience / 10).await;
                }
                ended => return ended,
            }
        }
    }

    /// Renews the lease in a separate task. Cancels `lost` if another process has the run, or if no renewal succeeds
    /// for the duration of the lease.
    pub(super) fn keep(&self, lease_duration: Duration, lost: CancellationToken) -> RenewalTask {
        let renewed = Arc::clone(&self.renewed);
        let lease = (self.run.clone(), self.slots.clone());
        RenewalTask(tokio::spawn(renew(Arc::clone(&self.store), lease, lease_duration, renewed, lost)))
    }
}

async fn renew(
    store: Arc<dyn Store>,
    (lease, slots): (RunLease, Option<Key>),
    lease_duration: Duration,
    renewed: Arc<LeaseTime>,
    lost: CancellationToken,
) {
    loop {
        // A failed renewal leaves time for another one within the lease.
        tokio::time::sleep(lease_duration / 3).await;
        match prolong(&*store, (&lease, slots.as_ref()), lease_duration, &renewed).await {
            Err(StoreError::Fenced) => break,
            // The lease has ended, so another worker may have the run.
            Err(_) if renewed.elapsed() > lease_duration => break,
            _ => {}
        }
    }
    lost.cancel();
}

async fn prolong(
    store: &dyn Store,
    (lease, slots): (&RunLease, Option<&Key>),
    lease_duration: Duration,
    renewed: &LeaseTime,
) -> Result<(), StoreError> {
    let (requested_at, held) = (LeaseTime::now(), lease.clone());
    let keys = std::iter::once(Key::run_head(Arc::clone(&lease.run_id))).chain(slots.cloned()).collect();
    transact(store, keys, move |transaction| runs::renew(transaction, &held, lease_duration)).await?;
    renewed.set(&requested_at);
    Ok(())
}

/// Renews a lease until it is dropped.
pub(super) struct RenewalTask(JoinHandle<()>);

impl Drop for RenewalTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use jiff::Timestamp;

    use super::*;
    use crate::store::{MemoryStore, StoredRun};
    use crate::testing::ManualClock;

    /// A process is stopped while it works. It continues if the run is still its own.
    #[tokio::test(start_paused = true)]
    async fn work_continues_after_a_stop_once_the_lease_is_confirmed() {
        let (lease_duration, owner) = (Duration::from_secs(30), |name: &str| Arc::<str>::from(name));
        for is_taken in [false, true] {
            let clock = Arc::new(ManualClock::at(Timestamp::UNIX_EPOCH));
            let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
            let (run, key) = (owner("run"), || vec![Key::run("run")]);
            let stored = StoredRun { due: Some(Timestamp::UNIX_EPOCH), ..StoredRun::new("run", "{}") };
            transact(&*store, key(), move |transaction| runs::enqueue(transaction, &stored)).await.unwrap();
            let take = async |owner: Arc<str>| {
                let run = Arc::clone(&run);
                let taker = runs::Taker { owner, lease_duration, version: None, per_tenant: None };
                let change = move |transaction: &mut _| runs::lease(transaction, &run, &taker);
                match transact(&*store, key(), change).await.unwrap() {
                    runs::Leasing::Leased(lease, _) => lease,
                    other => panic!("it is due: {other:?}"),
                }
            };
            let (lease_of_one, renewed) = (take(owner("one")).await, Arc::new(LeaseTime::now()));
            let lease = Lease {
                store: Arc::clone(&store) as _,
                run: lease_of_one,
                slots: None,
                patience: lease_duration,
                renewed,
            };
            let steps = AtomicU32::new(0);
            let work = async {
                steps.fetch_add(1, Ordering::Relaxed);
                if is_taken {
                    clock.advance(lease_duration);
                    take(owner("two")).await;
                }
                tokio::time::advance(lease_duration).await;
                steps.fetch_add(1, Ordering::Relaxed);
            };
            let ended = lease.attend(lease_duration, work).await;
            assert_eq!(matches!(ended, Err(StoreError::Fenced)), is_taken, "{ended:?}");
            assert_eq!(steps.load(Ordering::Relaxed), if is_taken { 1 } else { 2 });
        }
    }
}
