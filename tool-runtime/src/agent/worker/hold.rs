//! [`Hold`]: a run that this process has, and what it writes of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::Incoming;
use crate::agent::worker::oldest_post;
use crate::agent::worker::queue::{corrupt, transact};
use crate::store::runs::{self, Next, Progress};
use crate::store::{Document, Key, RunLease, Store, StoreError};

/// A run that this process has under a lease, for a worker or for an application that continues it itself. Each write is
/// checked against the lease.
pub(super) struct Hold {
    pub(super) store: Arc<dyn Store>,
    pub(super) lease: RunLease,
    /// How long a write is tried again while the store cannot be reached.
    pub(super) patience: Duration,
}

impl Hold {
    /// How often something happened to the run from outside.
    pub(super) async fn news(&self) -> Result<u64, StoreError> {
        match self.store.read(&[Key::run(Arc::clone(&self.lease.run_id))]).await?.pop().flatten() {
            Some(Document::Run(run)) => Ok(run.news),
            _ => Err(StoreError::Fenced),
        }
    }

    /// Returns the oldest of the run's post. `None` if there is none.
    pub(super) async fn post(&self) -> Result<Option<(Key, Incoming)>, StoreError> {
        let Some((key, post)) = oldest_post(&*self.store, &self.lease.run_id).await? else { return Ok(None) };
        let mut incoming: Incoming = serde_json::from_str(&post.body).map_err(corrupt)?;
        incoming.about = (!post.finishes.is_empty()).then(|| post.finishes.into());
        Ok(Some((key, incoming)))
    }

    /// Puts the run down as it was after its last step.
    pub(super) async fn put(
        &self,
        state: &str,
        due: Option<Timestamp>,
        news: u64,
        failures: u32,
    ) -> Result<(), StoreError> {
        let next = Next::Release { due, news };
        self.write(Progress { document: None, state: state.into(), taken: None, failures, next }).await
    }

    /// Writes what became of the run.
    pub(super) async fn write(&self, progress: Progress) -> Result<(), StoreError> {
        let taken = progress.taken.clone();
        let keys: Vec<_> = std::iter::once(Key::run(Arc::clone(&self.lease.run_id))).chain(taken).collect();
        let until = Instant::now() + self.patience;
        loop {
            let (lease, progress) = (self.lease.clone(), progress.clone());
            let change = move |transaction: &mut _| runs::save(transaction, &lease, &progress);
            match transact(&*self.store, keys.clone(), change).await {
                Err(error @ (StoreError::Unavailable(_) | StoreError::Panicked)) if Instant::now() < until => {
                    tracing::warn!(run = &*self.lease.run_id, error = error.code(), "a step is not kept yet");
                    tokio::time::sleep(self.patience / 10).await;
                }
                ended => return ended,
            }
        }
    }

    /// Prolongs the lease in a task of its own, until somebody else has the run, or nobody can tell: then `lost` fires.
    pub(super) fn keep(&self, by: Duration, lost: CancellationToken) -> Kept {
        Kept(tokio::spawn(renew(Arc::clone(&self.store), self.lease.clone(), by, lost)))
    }
}

async fn renew(store: Arc<dyn Store>, lease: RunLease, by: Duration, lost: CancellationToken) {
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(by / 3).await;
        let (asked, held) = (Instant::now(), lease.clone());
        let keys = vec![Key::run(Arc::clone(&lease.run_id))];
        match transact(&*store, keys, move |transaction| runs::renew(transaction, &held, by)).await {
            Ok(()) => renewed = asked,
            Err(StoreError::Fenced) => break,
            Err(_) if renewed.elapsed() > by => break,
            Err(_) => {}
        }
    }
    lost.cancel();
}

/// Prolongs a lease until it is dropped.
pub(super) struct Kept(JoinHandle<()>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.abort();
    }
}
