//! Kills or stops the process at a numbered place, for `check`. Places are before and after each turn of the model,
//! each read, each effect and each look-up of an effect, and after each write of the store.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use signal_hook::consts::{SIGKILL, SIGSTOP};
use signal_hook::low_level::raise;
use tokio::sync::oneshot;
use tool_runtime::store::{
    AuditRecord, ChangeFn, DueRun, Key, Query, QueueDepth, RecordFilter, SealedRecord, Store, StoreError,
    StoredDocument, WriteHandle,
};

/// Counts the places that the process passes, and kills or stops the process at one of them.
pub struct Crossings {
    /// The number of passed places, and the file that lists them; `None` without `FLEET_CROSSINGS`.
    seen: Option<Mutex<(u32, File)>>,
    signal: Option<(u32, Signal)>,
}

#[derive(Clone, Copy)]
enum Signal {
    Kill,
    Stop,
}

impl Crossings {
    /// Reads the environment. `FLEET_CROSSINGS` turns counting on. `FLEET_KILL` is the number of the place at which the
    /// process is killed. `FLEET_STOP` is the number of the place at which it stops until `SIGCONT`.
    ///
    /// # Errors
    /// The file `crossings` cannot be opened.
    pub fn from_env(data: &Path) -> io::Result<Self> {
        let place = |variable: &str| std::env::var(variable).ok().and_then(|at| at.parse().ok());
        let stop = || place("FLEET_STOP").map(|at| (at, Signal::Stop));
        let signal = place("FLEET_KILL").map(|at| (at, Signal::Kill)).or_else(stop);
        let seen = match std::env::var_os("FLEET_CROSSINGS") {
            Some(_) => {
                let file = OpenOptions::new().create(true).append(true).open(data.join("crossings"))?;
                Some(Mutex::new((0, file)))
            }
            None => None,
        };
        Ok(Self { seen, signal })
    }

    /// Counts a place. Kills or stops the process if the place has the chosen number.
    pub fn cross(&self, place: &str) {
        let Some(seen) = &self.seen else { return };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0 += 1;
        // The file is synchronized, so that it lists the place even if the process is killed now.
        let _written = writeln!(seen.1, "{place}").and_then(|()| seen.1.sync_data());
        // The lock is held, so no other thread passes a place at the same time.
        match self.signal.filter(|(at, _)| *at == seen.0) {
            None => {}
            // `raise` signals this thread, so it executes nothing more before the process stops.
            Some((_, Signal::Stop)) => {
                let _sent = raise(SIGSTOP);
            }
            Some((_, Signal::Kill)) => {
                // `SIGKILL` runs no destructor and flushes nothing.
                let _sent = raise(SIGKILL);
                std::process::abort();
            }
        }
    }
}

/// A store that counts each write as a place.
pub struct WatchedStore {
    store: Arc<dyn Store>,
    crossings: Arc<Crossings>,
}

impl WatchedStore {
    /// Wraps a store.
    pub const fn new(store: Arc<dyn Store>, crossings: Arc<Crossings>) -> Self {
        Self { store, crossings }
    }

    fn watched(&self, receipt: WriteHandle) -> WriteHandle {
        let (sender, receiver) = oneshot::channel();
        let crossings = Arc::clone(&self.crossings);
        tokio::spawn(async move {
            let kept = receipt.await;
            crossings.cross("after a write");
            let _heard = sender.send(kept);
        });
        WriteHandle::new(receiver)
    }
}

#[async_trait]
impl Store for WatchedStore {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.watched(self.store.append(record))
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        self.watched(self.store.update(keys, change))
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

    // The default implementation reads the time in a transaction, which would count as a write.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now().await
    }

    async fn changed(&self) {
        self.store.changed().await;
    }

    // The default implementations of these methods would read all runs, even if the wrapped store has faster ones.
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
