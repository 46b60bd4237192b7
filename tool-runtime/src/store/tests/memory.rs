//! The bounds of the store in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::policy::{NoticeEvent, NoticeTerms};
use crate::store::conformance::{self, record, waiting};
use crate::store::runs;
use crate::store::tests::retention::{grant, retention};
use crate::store::transact;
use crate::store::{
    AuditRecord, Chain, ChangeFn, Document, DocumentKind, GrantScope, Key, LedgerEntry, MemoryStore, Query,
    RecordFilter, SealedRecord, Store, StoreError, StoredDocument, StoredGrant, StoredRun, Transaction, Waiting,
    WriteHandle, notices,
};
use crate::testing::ManualClock;
use crate::tool::Hash;

fn small() -> MemoryStore {
    MemoryStore::with_limits(3, 2)
}

async fn put(store: &MemoryStore, calls: std::ops::Range<usize>) {
    for call in calls {
        store.append(record("run", &format!("call_{call}")).into()).await.unwrap();
    }
}

#[tokio::test]
async fn the_memory_store_keeps_every_promise() {
    conformance::check(|| async { Arc::new(MemoryStore::with_limits(10_000, 10_000)) as Arc<dyn Store> }).await;
}

#[tokio::test]
async fn the_oldest_records_make_room() {
    let (store, all) = (small(), RecordFilter::default());
    put(&store, 0..2).await;
    let mut read = store.records(&all).await.unwrap();
    put(&store, 2..4).await;
    let later = store.records(&all).await.unwrap();
    assert_eq!((later.len(), later[0].record.call_id().as_str(), store.dropped()), (3, "call_1", 1));
    // No record was dropped before the first read, so the two reads form one chain.
    read.extend_from_slice(&later[1..]);
    assert_eq!(Chain::verify(&read), Ok(()));
}

#[tokio::test]
async fn a_gap_shows_in_the_chain() {
    let (store, all) = (small(), RecordFilter::default());
    put(&store, 0..3).await;
    let mut read = store.records(&all).await.unwrap();
    put(&store, 3..10).await;
    let later = store.records(&all).await.unwrap();
    assert_eq!((later.len(), store.dropped()), (3, 7));
    assert_eq!(Chain::verify(&later), Ok(()));
    read.extend(later);
    assert_eq!(Chain::verify(&read).unwrap_err().index(), Some(3));
}

fn keep(store: &MemoryStore, call: &'static str) -> Result<(), StoreError> {
    let key = Key::waiting("run", None, Some("ada"), &call.into());
    let change = move |transaction: &mut Transaction| {
        transaction.set(
            &Key::waiting("run", None, Some("ada"), &call.into()),
            Document::Waiting(Box::new(waiting("run", call, 1))),
        )
    };
    let receipt = store.update(vec![key], Box::new(change));
    if receipt.is_kept() { Ok(()) } else { Err(StoreError::Full) }
}

/// Records the decision on a call that expires at `expires`.
fn decide(store: &MemoryStore, call: &str, expires: i64) -> Result<(), StoreError> {
    let key = Key::decided(&waiting("run", call, expires).call);
    let until = jiff::Timestamp::from_second(expires).unwrap();
    let change = {
        let key = key.clone();
        move |transaction: &mut Transaction| transaction.set(&key, Document::Decided { until })
    };
    let receipt = store.update(vec![key], Box::new(change));
    if receipt.is_kept() { Ok(()) } else { Err(StoreError::Full) }
}

#[tokio::test]
async fn decided_calls_are_kept_until_they_expire() {
    let start = jiff::Timestamp::from_second(0).unwrap();
    let clock = Arc::new(ManualClock::at(start));
    let store = MemoryStore::with_clock_and_limits(Arc::clone(&clock), 3, 2);
    for call in 0..32 {
        decide(&store, &format!("call_{call}"), if call < 8 { 10 } else { 20 }).unwrap();
    }
    // Marks of decided calls do not count as open documents.
    assert!(keep(&store, "a").is_ok());
    put(&store, 0..9).await;
    assert!(decide(&store, "one more", 20).is_err(), "none is dropped before it expires");
    assert!(decide(&store, "call_0", 10).is_ok(), "a known mark is replaced");
    clock.advance(std::time::Duration::from_secs(10));
    for call in 32..40 {
        decide(&store, &format!("call_{call}"), 20).unwrap();
    }
    assert!(decide(&store, "one more", 20).is_err());
    let listed = store.list(&Query::new(DocumentKind::Decided)).await.unwrap();
    assert_eq!(listed.len(), 32);
}

#[tokio::test]
async fn a_full_store_refuses_a_waiting_call_and_drops_none() {
    let store = small();
    for (call, kept) in [("a", true), ("b", true), ("c", false), ("a", true)] {
        assert_eq!(keep(&store, call).is_ok(), kept, "{call}");
    }
    let remove =
        |transaction: &mut Transaction| transaction.remove(&Key::waiting("run", None, Some("ada"), &"a".into()));
    store.update(vec![Key::waiting("run", None, Some("ada"), &"a".into())], Box::new(remove)).await.unwrap();
    assert!(keep(&store, "c").is_ok());
}

/// A full store drops an expired grant, unless a legal hold covers it.
#[tokio::test]
async fn a_legal_hold_keeps_an_expired_grant_in_a_full_store() {
    let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let store = MemoryStore::with_clock_and_limits(clock, 3, 3);
    let over = Some(jiff::Timestamp::UNIX_EPOCH);
    let expired = StoredGrant { expires_at: over, ..grant("old", GrantScope::Principal) };
    let key = expired.key();
    let write = move |transaction: &mut Transaction| {
        transaction.set(&expired.key(), Document::Grant(Box::new(expired.clone())))
    };
    store.update(vec![key.clone()], Box::new(write)).await.unwrap();
    let hold = retention(&store).hold_run("one").await.unwrap();
    let has_grant = async || store.read(std::slice::from_ref(&key)).await.unwrap()[0].is_some();
    keep(&store, "a").unwrap();
    assert_eq!((keep(&store, "b").is_ok(), has_grant().await), (false, true));
    assert!(retention(&store).lift(&hold.id).await.unwrap());
    keep(&store, "b").unwrap();
    assert_eq!((keep(&store, "c").is_ok(), has_grant().await), (true, false));
}

/// Notices make room for each other, and finished calls do: neither displaces the other.
#[tokio::test]
async fn notices_and_finished_calls_have_their_own_room() {
    let store = small();
    let counts = async || {
        let counted = async |kind| store.list(&Query::new(kind)).await.unwrap().len();
        (counted(DocumentKind::Call).await, counted(DocumentKind::Notice).await)
    };
    let notice = async |call: &str| {
        let terms = NoticeTerms { events: [NoticeEvent::Waiting].into(), ..NoticeTerms::default() };
        let suspended = Waiting { notices: Some(Arc::new(terms)), ..waiting("run", call, 1) };
        let key = Key::of_waiting(&suspended.call);
        let change = move |transaction: &mut Transaction| notices::waits(transaction, &suspended, None);
        store.update(vec![key], Box::new(change)).await.unwrap();
    };
    let end = async |number: u8| {
        let record = Box::new(record("run", &format!("call_{number}")));
        let key = Key::call("run", Hash([number; 32]));
        let named = key.clone();
        let change = move |transaction: &mut Transaction| {
            let entry = LedgerEntry::closed("".into(), 1, jiff::Timestamp::UNIX_EPOCH, record.clone());
            transaction.set(&named, Document::Call(Box::new(entry)))
        };
        store.update(vec![key], Box::new(change)).await.unwrap();
    };
    for number in 0..2 {
        end(number).await;
    }
    for number in 0..5 {
        notice(&format!("call_{number}")).await;
    }
    assert_eq!(counts().await, (2, 3));
    for number in 2..7 {
        end(number).await;
    }
    assert_eq!(counts().await, (3, 3));
    assert!(keep(&store, "a").is_ok() && keep(&store, "b").is_ok(), "they do not count as open documents");
}

/// A full store can still count the leased runs of a tenant. Otherwise, none of its runs would ever end.
#[tokio::test]
async fn a_full_store_leases_runs_under_a_limit() {
    let store = small();
    let due = |id: &str| StoredRun { due: Some(jiff::Timestamp::UNIX_EPOCH), ..StoredRun::new(id, "{}") };
    for id in ["a", "b"] {
        let enqueue = move |transaction: &mut Transaction| runs::enqueue(transaction, &due(id));
        store.update(vec![Key::run(id)], Box::new(enqueue)).await.unwrap();
    }
    assert!(matches!(keep(&store, "more"), Err(StoreError::Full)));
    let taker = runs::Taker { per_tenant: Some(1), ..runs::Taker::any("worker", std::time::Duration::from_secs(30)) };
    let lease = move |transaction: &mut Transaction| runs::lease(transaction, &"a".into(), &taker);
    let leased = transact(&store, vec![Key::run("a"), due("a").slots()], lease).await.unwrap();
    assert!(leased.leased().is_some());
}

/// A store with the default queue, whose pages have one document or record. It counts the documents that it lists.
struct Listing(MemoryStore, AtomicU32);

impl Listing {
    fn new(store: MemoryStore) -> Self {
        Self(store, AtomicU32::new(0))
    }
}

#[async_trait::async_trait]
impl Store for Listing {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.0.append(record)
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        self.0.update(keys, change)
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        self.0.read(keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        let listed = self.0.list(&Query { limit: query.limit.min(1), ..query.clone() }).await?;
        self.1.fetch_add(u32::try_from(listed.len()).unwrap(), Ordering::Relaxed);
        Ok(listed)
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        self.0.records(&RecordFilter { limit: filter.limit.map(|limit| limit.min(1)), ..filter.clone() }).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.0.flush().await
    }

    async fn changed(&self) {
        self.0.changed().await;
    }
}

#[tokio::test]
async fn short_pages_break_no_promise() {
    conformance::check(|| async { Arc::new(Listing::new(MemoryStore::with_limits(10_000, 10_000))) as Arc<dyn Store> })
        .await;
}

/// The default methods provide the queue for a store that only lists documents.
#[tokio::test]
async fn the_queue_of_a_store_has_defaults() {
    // A worker's poll reads no run that has ended or is due later.
    let store = Listing::new(MemoryStore::new());
    for (number, due) in [None, Some(0), Some(5), Some(50)].into_iter().cycle().take(400).enumerate() {
        let due = due.map(|due| jiff::Timestamp::from_second(due).unwrap());
        let run = StoredDocument::example(&format!("run {number}"), "{}", due);
        let put = move |transaction: &mut Transaction| transaction.put(run.clone());
        store.update(vec![Key::run(format!("run {number}"))], Box::new(put)).await.unwrap();
    }
    let now = jiff::Timestamp::from_second(10).unwrap();
    assert_eq!(store.lanes(now, "", 10).await.unwrap().len(), 1);
    assert_eq!(store.1.swap(0, Ordering::Relaxed), 200, "the lanes of due runs");
    assert_eq!(store.due_runs(now, None, 10).await.unwrap().len(), 10);
    assert_eq!(store.1.load(Ordering::Relaxed), 200, "the due runs");
}
