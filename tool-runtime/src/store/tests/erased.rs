//! Erasures in runs of several parties, of documents for repeated calls, and with other writers.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Decider;
use crate::store::conformance::record;
use crate::store::retention_record::{Act, RetentionRecord};
use crate::store::tests::retention::{DAY, change, found, history, retention, store_key};
use crate::store::{
    Document, DocumentKind, HoldScope, Key, LedgerEntry, MemoryStore, Post, Query, RecordFilter, Retention,
    SealedRecord, Store, StoredRun, Verification,
};
use crate::testing::ManualClock;
use crate::tool::Hash;

fn of(principal: &str, call: &str) -> crate::ToolInvocationRecord {
    crate::ToolInvocationRecord { principal: Some(principal.into()), ..record("one", call) }
}

/// If two parties used a run under the same id, the run stays open for the other party and keeps its calls.
#[tokio::test]
async fn a_shared_run_keeps_its_calls() {
    let store = MemoryStore::new();
    let keys = [Key::call("one", Hash([1; 32])), Key::call("one", Hash([2; 32]))];
    for (key, principal) in keys.iter().zip(["ada", "bob"]) {
        store.append(of(principal, "a").into()).await.unwrap();
        let keys = [key.clone()];
        let [key] = keys.clone();
        change(&store, &keys, move |transaction| {
            let ended = Box::new(of(principal, "a"));
            let entry = LedgerEntry::closed("owner".into(), 1, transaction.now(), ended);
            transaction.set(&key, Document::Call(Box::new(entry)))
        })
        .await;
    }
    let report = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!((report.records, report.documents, report.kept_runs), (1, 1, 0));
    let left = store.read(&keys).await.unwrap();
    let left: Vec<_> = left.iter().map(|stored| stored.as_ref().unwrap().to_json().unwrap()).collect();
    assert!(!left[0].contains("\"ada\"") && left[1].contains("\"bob\""), "{left:?}");
    store.append(of("bob", "later").into()).await.unwrap();
    assert_eq!(found(&store, &[]).await, [""; 0]);
}

fn served(id: &str) -> StoredRun {
    let state = "served".into();
    StoredRun {
        principal: Some("ada".into()),
        state,
        changed: Some(jiff::Timestamp::UNIX_EPOCH),
        ..StoredRun::new(id, "run.call_1")
    }
}

async fn put(store: &MemoryStore, run: StoredRun) {
    change(store, &[Key::run(Arc::clone(&run.run_id))], move |transaction| {
        transaction.set(&Key::run(Arc::clone(&run.run_id)), Document::Run(Box::new(run.clone())))
    })
    .await;
}

/// A mark in place of this document would refuse the repeated call of the client forever.
#[tokio::test]
async fn the_name_of_a_call_is_removed() {
    for erases in [true, false] {
        let store = MemoryStore::with_clock(Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap())));
        put(&store, served("asked_00ff")).await;
        put(&store, served("session")).await;
        let retention = retention(&store);
        let report =
            if erases { retention.erase("ada", None).await.unwrap() } else { retention.purge(DAY).await.unwrap() };
        assert_eq!((report.runs, report.kept_runs), (1, 0), "the document is not a run");
        let left = store.read(&[Key::run("asked_00ff"), Key::run("session")]).await.unwrap();
        assert!(left[0].is_none(), "the document was removed");
        assert!(matches!(left[1].as_ref().unwrap().document, Document::Purged { .. }));
        put(&store, served("asked_00ff")).await;
    }
}

/// Only the erasure of its own party removes the messages of a run.
#[tokio::test]
async fn messages_of_a_held_principal_stay() {
    let store = MemoryStore::new();
    let post = Key::post("one", "p");
    let place = post.clone();
    change(&store, &[Key::run("one"), post.clone()], move |transaction| {
        // An erasure by an earlier version could leave this state.
        transaction.set(&Key::run("one"), Document::Purged { at: transaction.now() })?;
        let document = Post { body: "{}".into(), at: transaction.now(), answers: Vec::new(), holder: None };
        transaction.set(&place, Document::Post(Box::new(document)))
    })
    .await;
    retention(&store).hold(HoldScope::Principal { principal: "bob".into(), tenant: None }).await.unwrap();
    retention(&store).erase("ada", None).await.unwrap();
    assert!(store.read(&[post]).await.unwrap()[0].is_some());
}

/// The messages and the calls of a run are removed when the run is closed.
#[tokio::test]
async fn nothing_of_a_closed_run_is_left_in_the_ledger() {
    let store = MemoryStore::new();
    put(&store, served("session")).await;
    let keys = [Key::call("session", Hash([1; 32])), Key::post("session", "p")];
    let [call, post] = keys.clone();
    change(&store, &keys, move |transaction| {
        let body = Post { body: "{}".into(), at: transaction.now(), answers: Vec::new(), holder: None };
        transaction.set(&post, Document::Post(Box::new(body)))?;
        let entry = LedgerEntry::closed("owner".into(), 1, transaction.now(), Box::new(record("session", "a")));
        transaction.set(&call, Document::Call(Box::new(entry)))
    })
    .await;
    assert_eq!(retention(&store).erase("ada", None).await.unwrap().runs, 1);
    for kind in [DocumentKind::Call, DocumentKind::Post] {
        assert!(store.list(&Query::new(kind)).await.unwrap().is_empty(), "{kind:?}");
    }
}

fn lines(records: &[SealedRecord]) -> Vec<String> {
    records.iter().map(|sealed| serde_json::to_string(sealed).unwrap()).collect()
}

/// An export by time can end before the record of an erasure.
#[tokio::test]
async fn a_part_that_ends_before_the_erasure_verifies() {
    let (store, anchors) = history().await;
    retention(&store).erase("ada", None).await.unwrap();
    let key = store_key(&store).await;
    let records = store.records(&RecordFilter::default()).await.unwrap();
    let calls: Vec<_> = records.iter().filter(|sealed| sealed.record.as_retention().is_none()).cloned().collect();
    let verify = |part: bool, records: &[SealedRecord]| {
        let verification = Verification::new().digest_key(key.clone());
        let lines = lines(records);
        verification.verify_lines(&anchors, part, |check| lines.iter().try_for_each(|line| check(line))).unwrap()
    };
    let verified = verify(true, &calls);
    assert_eq!((verified.findings, verified.erased, verified.erased_unlisted), (vec![], 0, 6));
    let verified = verify(true, &records);
    assert_eq!((verified.findings, verified.erased, verified.erased_unlisted), (vec![], 6, 0));
    let codes: Vec<_> = verify(false, &calls).findings.iter().map(crate::store::Finding::code).collect();
    assert_eq!(codes, ["erasure_unlisted"; 6], "a whole export needs the record of the erasure");
    let mut changed = calls;
    changed[1].record = record("one", "call_9").into();
    assert_ne!(verify(true, &changed).findings, []);
}

/// A person who can write to the store restores the values of erased records from a backup.
#[tokio::test]
async fn values_that_were_put_back_are_found() {
    let (store, anchors) = history().await;
    let before = store.records(&RecordFilter::run("one")).await.unwrap().swap_remove(1);
    retention(&store).erase("ada", None).await.unwrap();
    assert_eq!(found(&store, &anchors).await, [""; 0]);
    change(&store, &[Key::run("one")], move |transaction| transaction.erase(before.clone())).await;
    assert_eq!(found(&store, &anchors).await, ["erasure_undone"]);
    let verified = Verification::of_store(&store, &[], |_| {}).await.unwrap();
    assert_eq!((verified.erased, verified.findings[0].record()), (5, Some(("one", 1))));
    let report = retention(&store).run("one").purge(Duration::ZERO).await.unwrap();
    assert_eq!(report.kept, [("one".into(), "broken")]);
    // A part that begins after the record does not show the change.
    let records = store.records(&RecordFilter::run("one")).await.unwrap();
    let lines = lines(&records[2..]);
    let part = Verification::new().digest_key(store_key(&store).await);
    let part = part.verify_lines(&[], true, |check| lines.iter().try_for_each(|line| check(line))).unwrap();
    assert_eq!((part.findings, part.erased), (vec![], 1));
}

/// Two concurrent erasures can list the same places.
#[tokio::test]
async fn a_place_may_be_listed_twice() {
    let (store, _) = history().await;
    retention(&store).erase("ada", None).await.unwrap();
    let key = store_key(&store).await;
    change(&store, &[Key::run("one")], move |transaction| {
        let (by, act) = (Decider::new("grace"), Act::Erased(vec![0, 1]));
        transaction.append(RetentionRecord::signed("one", &by, transaction.now(), act, &key)?)
    })
    .await;
    assert_eq!(found(&store, &[]).await, [""; 0]);
    let again = Retention::new(&store, Decider::new("grace")).purge(Duration::ZERO).await.unwrap();
    assert_eq!((again.runs, again.kept_runs), (2, 0));
}
