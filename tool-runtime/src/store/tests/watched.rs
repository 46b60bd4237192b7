//! Erasures with concurrent writers, and the number of records that they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;

use crate::call::Decider;
use crate::store::conformance::{record, waiting};
use crate::store::tests::retention::{DAY, change, found, history};
use crate::store::{
    AuditRecord, ChangeFn, Document, HoldScope, Key, MemoryStore, Query, RecordFilter, Retention, SealedRecord, Store,
    StoreError, StoredDocument, StoredRun, Transaction, WriteHandle,
};

/// A store that counts the records that it reads. With `opens`, a call of run one begins to wait as soon as the run is
/// about to be changed.
struct Watched {
    store: MemoryStore,
    opens: AtomicBool,
    /// The records that were read.
    read: AtomicUsize,
    /// The largest number of records, and of conversations, that were read at once.
    most: (AtomicUsize, AtomicUsize),
}

impl Watched {
    fn new(store: MemoryStore, opens: bool) -> Arc<Self> {
        Arc::new(Self { store, opens: AtomicBool::new(opens), read: AtomicUsize::new(0), most: <_>::default() })
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
        let listed = self.store.list(query).await?;
        let conversations = listed.iter().filter(|document| document.as_run().is_some()).count();
        self.most.1.fetch_max(conversations, Ordering::AcqRel);
        Ok(listed)
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        let records = self.store.records(filter).await?;
        self.read.fetch_add(records.len(), Ordering::AcqRel);
        self.most.0.fetch_max(records.len(), Ordering::AcqRel);
        Ok(records)
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }
}

/// If a call begins after the first check of its principal, its run is kept, and nothing in it is erased.
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

/// A store with one long run, whose conversation was last written at the Unix epoch.
async fn long_run(id: &'static str, records: usize) -> Arc<Watched> {
    let store = Watched::new(MemoryStore::with_limits(10_000, 10_000), false);
    for number in 0..records {
        store.append(record(id, &format!("call_{number}")).into()).await.unwrap();
    }
    add_conversation(&store, id).await;
    store
}

async fn add_conversation(store: &Watched, id: &str) {
    let (principal, changed) = (Some("ada".into()), Some(jiff::Timestamp::UNIX_EPOCH));
    let run = StoredRun { principal, changed, ..StoredRun::new(id, "{}") };
    change(&store.store, &[Key::run(id)], move |transaction| {
        transaction.set(&Key::run(Arc::clone(&run.run_id)), Document::Run(Box::new(run.clone())))
    })
    .await;
}

/// The records of a run are read only if the run can be removed. Otherwise, one read finds the reason to keep the run.
#[tokio::test]
async fn a_purge_does_not_read_a_run_that_is_kept() {
    const RECORDS: usize = 900;
    for (why, kept) in [("legal_hold", 1), ("in_progress", 1), ("young", 0)] {
        let store = long_run("long", RECORDS).await;
        match why {
            "legal_hold" => drop(retention(&store).hold(HoldScope::Run("long".into())).await.unwrap()),
            "in_progress" => {
                let suspended = waiting("long", "w", 9);
                change(&store.store, &[Key::of_waiting(&suspended.call)], move |transaction| {
                    let place = Key::of_waiting(&suspended.call);
                    transaction.set(&place, Document::Waiting(Box::new(suspended.clone())))
                })
                .await;
            }
            _ => {
                let ended_at = Some(store.now().await.unwrap());
                let young = crate::ToolInvocationRecord { ended_at, ..record("long", "young") };
                store.append(young.into()).await.unwrap();
            }
        }
        store.read.store(0, Ordering::Release);
        let report = retention(&store).run("long").purge(DAY).await.unwrap();
        assert_eq!((report.runs, report.kept_runs), (0, kept), "{why}");
        assert!(report.kept.iter().all(|(_, found)| *found == why), "{why}: {report:?}");
        let read = store.read.swap(0, Ordering::AcqRel);
        assert!(read <= 1, "{why}: {read} records were read");
        retention(&store).purge(DAY).await.unwrap();
        let read = store.read.load(Ordering::Acquire);
        assert!(read <= RECORDS + 8, "{why}: {read} records were read");
    }
}

/// The memory that a removal uses does not depend on the number of records and conversations.
#[tokio::test]
async fn a_removal_reads_a_page_at_a_time() {
    const RECORDS: usize = 1_200;
    const CONVERSATIONS: usize = 300;
    for erases in [true, false] {
        let store = long_run("long", RECORDS).await;
        for number in 0..CONVERSATIONS {
            add_conversation(&store, &format!("talk {number}")).await;
        }
        let retention = retention(&store);
        let report =
            if erases { retention.erase("ada", None).await.unwrap() } else { retention.purge(DAY).await.unwrap() };
        assert_eq!((report.records, report.kept_runs), (RECORDS as u64, 0), "erases: {erases}");
        assert_eq!(report.runs, CONVERSATIONS as u64 + 1, "erases: {erases}");
        let (records, conversations) = (store.most.0.load(Ordering::Acquire), store.most.1.load(Ordering::Acquire));
        assert!(records <= 500 && conversations <= 64, "{records} records and {conversations} conversations at once");
    }
}
