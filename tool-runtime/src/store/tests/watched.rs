//! Erasures at the same time as other writers, and how much they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;

use crate::call::Decider;
use crate::store::conformance::{record, waiting};
use crate::store::tests::retention::{change, found, history};
use crate::store::{
    AuditRecord, ChangeFn, Document, HoldScope, Key, MemoryStore, Query, RecordFilter, Retention, SealedRecord, Store,
    StoreError, StoredDocument, StoredRun, Transaction, WriteHandle,
};

/// A store that counts the records that are read. With `opens`, a call of run one begins to wait as soon as the run is
/// about to be changed.
struct Watched {
    store: MemoryStore,
    opens: AtomicBool,
    read: AtomicUsize,
}

impl Watched {
    fn new(store: MemoryStore, opens: bool) -> Arc<Self> {
        Arc::new(Self { store, opens: AtomicBool::new(opens), read: AtomicUsize::new(0) })
    }
}

fn retention(store: &Watched) -> Retention<'_> {
    Retention::new(store, Decider::new("grace").because("Asked for."))
}

#[async_trait]
impl Store for Watched {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.store.append(record)
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        if keys.contains(&Key::run("one")) && self.opens.swap(false, Ordering::AcqRel) {
            let key = Key::of_waiting(&waiting("one", "w", 9).call);
            let place = key.clone();
            let open = move |transaction: &mut Transaction| {
                transaction.set(&place, Document::Waiting(Box::new(waiting("one", "w", 9))))
            };
            drop(self.store.update(vec![key], Box::new(open)));
        }
        self.store.update(keys, change)
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.store.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        self.store.list(query).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        let records = self.store.records(filter).await?;
        self.read.fetch_add(records.len(), Ordering::AcqRel);
        Ok(records)
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }
}

/// A call that begins after the first look at its principal keeps the run, and nothing of it is erased.
#[tokio::test]
async fn a_call_that_begins_meanwhile_keeps_its_run() {
    let store = Watched::new(history().await.0, true);
    let report = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!(report.kept, [("one".into(), "in_progress")]);
    assert_eq!((report.runs, report.records), (1, 3), "the other run is erased");
    let records = store.store.records(&RecordFilter::run("one")).await.unwrap();
    assert!(records.iter().all(|sealed| !sealed.record.is_erased()));
    let key = Key::of_waiting(&waiting("one", "w", 9).call);
    change(&store.store, std::slice::from_ref(&key.clone()), move |transaction| transaction.remove(&key)).await;
    let report = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!((report.records, report.kept_runs), (3, 0));
    assert_eq!(found(&store.store, &[]).await, [""; 0]);
}

/// A run that is kept is read once, and counted once.
#[tokio::test]
async fn a_kept_run_is_read_once() {
    const RECORDS: usize = 900;
    let store = Watched::new(MemoryStore::new(), false);
    for number in 0..RECORDS {
        store.append(record("held", &format!("call_{number}")).into()).await.unwrap();
    }
    let run = StoredRun { principal: Some("ada".into()), ..StoredRun::new("held", "{}") };
    change(&store.store, &[Key::run("held")], move |transaction| {
        transaction.set(&Key::run("held"), Document::Run(Box::new(run.clone())))
    })
    .await;
    retention(&store).hold(HoldScope::Run("held".into())).await.unwrap();
    store.read.store(0, Ordering::Release);
    let report = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!((report.kept_runs, report.kept), (1, vec![("held".into(), "legal_hold")]));
    let read = store.read.load(Ordering::Acquire);
    assert!(read < 2 * RECORDS, "{read} records were read");
}
