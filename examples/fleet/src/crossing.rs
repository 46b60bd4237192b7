//! Where `check` ends the process: before and after each turn of the model, each effect, and each write of the store.

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
    AuditRecord, ChangeFn, Key, Query, WriteHandle, RecordFilter, SealedRecord, Store, StoreError, StoredDocument,
};

/// Counts the places that the process comes by, and kills or stops it at one of them.
pub struct Crossings {
    /// What was come by, and the file that says so. Nothing is counted without `FLEET_CROSSINGS`.
    seen: Option<Mutex<(u32, File)>>,
    signal: Option<(u32, Signal)>,
}

#[derive(Clone, Copy)]
enum Signal {
    Kill,
    Stop,
}

impl Crossings {
    /// Counts if `FLEET_CROSSINGS` is set, and ends the process at the place with the number `FLEET_KILL`, or stops it at
    /// `FLEET_STOP` until somebody continues it.
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

    /// The process comes by here.
    pub fn cross(&self, place: &str) {
        let Some(seen) = &self.seen else { return };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0 += 1;
        let _written = writeln!(seen.1, "{place}").and_then(|()| seen.1.sync_data());
        // The lock is held: nobody else comes by meanwhile.
        match self.signal.filter(|(at, _)| *at == seen.0) {
            None => {}
            // Sent to this thread, which therefore does nothing more before the process stands still.
            Some((_, Signal::Stop)) => {
                let _sent = raise(SIGSTOP);
            }
            Some((_, Signal::Kill)) => {
                // No destructor runs, and nothing is flushed.
                let _sent = raise(SIGKILL);
                std::process::abort();
            }
        }
    }
}

/// A store whose writes are places that the process comes by.
pub struct WatchedStore {
    store: Arc<dyn Store>,
    crossings: Arc<Crossings>,
}

impl WatchedStore {
    /// Watches a store.
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

    // By default a transaction says it, which would be a place of its own.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now().await
    }

    async fn changed(&self) {
        self.store.changed().await;
    }
}
