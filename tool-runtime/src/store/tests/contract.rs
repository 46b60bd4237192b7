//! What every store must do. A store behind a feature runs these cases too.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::call::{CallId, Suspension};
use crate::store::tests::{at, record, waiting};
use crate::store::{
    Chain, Clock, ManualClock, MemoryStore, PendingCall, PendingFilter, Receipt, RecordFilter, Store, StoreError,
};

/// Runs every case on a store of its own.
pub(crate) async fn check<F: Future<Output = Arc<dyn Store>>>(store: impl Fn() -> F) {
    closed_records_are_chained(&*store().await).await;
    open_records_are_replaced(&*store().await).await;
    a_pending_call_is_claimed_once(store().await).await;
    pending_calls_are_listed(&*store().await).await;
}

#[tokio::test]
async fn in_memory() {
    check(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> }).await;
}

fn ids(records: &[crate::call::ToolInvocationRecord]) -> Vec<&str> {
    records.iter().map(|record| record.tool_call_id.as_str()).collect()
}

async fn closed_records_are_chained(store: &dyn Store) {
    for (run, call) in [("one", "a"), ("two", "a"), ("one", "b")] {
        store.put(record(run, call, Some(1))).await.unwrap();
    }
    store.flush().await.unwrap();
    let all = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!(ids(&all), ["a", "a", "b"]);
    assert_eq!(Chain::new().follow(&all), Ok(()));
    store.put(record("two", "c", Some(1))).await.unwrap();
    let more = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!(Chain::new().follow(&more), Ok(()));
    assert_eq!(more[2].hash, all[2].hash);
    assert_eq!(ids(&store.records(&RecordFilter::run("one")).await.unwrap()), ["a", "b"]);
    let call = RecordFilter::call("two", CallId::new("a"));
    assert_eq!(store.records(&call).await.unwrap().len(), 1);
    let page = RecordFilter { skip: 1, limit: Some(2), ..RecordFilter::default() };
    assert_eq!(ids(&store.records(&page).await.unwrap()), ["a", "b"]);
}

async fn open_records_are_replaced(store: &dyn Store) {
    let all = RecordFilter::default();
    for (run, call) in [("one", "b"), ("one", "a"), ("two", "a"), ("one", "b")] {
        store.put(record(run, call, None)).await.unwrap();
    }
    assert_eq!(ids(&store.open_records(&all).await.unwrap()), ["b", "a", "a"]);
    assert!(store.records(&all).await.unwrap().is_empty());
    store.put(record("one", "a", Some(2))).await.unwrap();
    assert_eq!(ids(&store.open_records(&RecordFilter::run("one")).await.unwrap()), ["b"]);
    assert_eq!(ids(&store.open_records(&RecordFilter::run("two")).await.unwrap()), ["a"]);
    assert_eq!(ids(&store.records(&all).await.unwrap()), ["a"]);
}

async fn a_pending_call_is_claimed_once(store: Arc<dyn Store>) {
    let id = CallId::new("a");
    store.suspend(waiting("one", "a", 10)).await.unwrap();
    assert!(matches!(store.suspend(waiting("one", "a", 10)).await, Err(StoreError::Duplicate)));
    store.suspend(waiting("two", "a", 10)).await.unwrap();
    assert_eq!(store.pending("one", &id).await.unwrap().unwrap().arguments.as_str(), r#"{"pin":"1234"}"#);
    let claims: Vec<_> = (0..8)
        .map(|_| {
            let (store, id) = (Arc::clone(&store), id.clone());
            tokio::spawn(async move { store.claim("one", &id).await.unwrap().is_some() })
        })
        .collect();
    let mut got = 0;
    for claim in claims {
        got += usize::from(claim.await.unwrap());
    }
    assert_eq!(got, 1);
    assert!(store.pending("one", &id).await.unwrap().is_none());
    assert!(store.claim("three", &id).await.unwrap().is_none());
    assert!(store.claim("two", &id).await.unwrap().is_some());
}

async fn pending_calls_are_listed(store: &dyn Store) {
    for (run, call, expires) in [("one", "b", 10), ("one", "a", 20), ("two", "c", 30)] {
        store.suspend(waiting(run, call, expires)).await.unwrap();
    }
    let list = async |filter: PendingFilter| {
        let calls = store.list(&filter).await.unwrap();
        calls.iter().map(|call| call.call_id.as_str().to_owned()).collect::<Vec<_>>()
    };
    let all = PendingFilter::default;
    assert_eq!(list(all()).await, ["b", "a", "c"]);
    assert_eq!(list(PendingFilter { run_id: Some("one".into()), ..all() }).await, ["b", "a"]);
    assert_eq!(list(PendingFilter { call_id: Some(CallId::new("c")), ..all() }).await, ["c"]);
    assert_eq!(list(PendingFilter { expired_at: Some(at(20)), ..all() }).await, ["b", "a"]);
    assert_eq!(list(PendingFilter { suspension: Some(Suspension::Client), ..all() }).await, [""; 0]);
    assert_eq!(list(PendingFilter { conversation_id: Some("other".into()), ..all() }).await, [""; 0]);
}

#[test]
fn a_pending_call_is_a_versioned_document() {
    let call = waiting("one", "a", 10);
    assert!(!format!("{call:?}").contains("1234"));
    let text = serde_json::to_string(&call).unwrap();
    assert!(text.starts_with("{\"version\":1,"));
    let again: PendingCall = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    let later = text.replacen("\"version\":1", "\"version\":2,\"more\":0", 1);
    let error = serde_json::from_str::<PendingCall>(&later).unwrap_err().to_string();
    assert!(error.starts_with("the pending call was written by another version"), "{error}");
    let error = serde_json::from_str::<PendingCall>(&text.replacen('{', "{\"more\":0,", 1)).unwrap_err().to_string();
    assert!(error.starts_with("unknown field `more`"), "{error}");
    let clock = ManualClock::at(at(9));
    assert!(!call.is_expired(clock.now()));
    clock.advance(std::time::Duration::from_secs(1));
    assert!(call.is_expired(clock.now()));
}

#[tokio::test]
async fn a_receipt_resolves_when_its_writer_says_so() {
    let (writer, receiver) = oneshot::channel();
    writer.send(Ok(())).unwrap();
    assert!(Receipt::new(receiver).await.is_ok());
    let (writer, receiver) = oneshot::channel();
    drop(writer);
    assert!(matches!(Receipt::new(receiver).await, Err(StoreError::Lost)));
}
