//! Anchors over the chains of all runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::conformance::{listed, record};
use crate::store::{Anchor, Document, DocumentKind, Query, Store, Verification};

async fn put(store: &dyn Store, run: &str, call: &str) {
    store.append(record(run, call).into()).await.expect("it keeps records");
}

/// Makes anchors and returns them.
async fn made(store: &dyn Store) -> Vec<Anchor> {
    let mut made = Vec::new();
    let count = store.anchor(|anchor| made.push(anchor.clone())).await.expect("it anchors");
    assert_eq!(count, made.len() as u64, "each new anchor is reported");
    made
}

/// Verifies the store and returns the result. Panics if there are findings.
async fn verified(store: &dyn Store, anchors: &[Anchor]) -> Verification {
    let verified = Verification::of_store(store, anchors, |_| {}).await.expect("it is read");
    assert_eq!(verified.findings, [], "everything is as it was sealed");
    verified
}

/// Returns the newest head of each run. A store with shorter pages of records makes more anchors.
fn heads(anchors: &[Anchor]) -> Vec<(&str, u64)> {
    let heads = anchors.iter().flat_map(|anchor| &anchor.heads).map(|head| (&*head.run_id, head.sequence));
    heads.collect::<BTreeMap<_, _>>().into_iter().collect()
}

pub(super) async fn anchors_hold_new_records(store: Arc<dyn Store>) {
    let store = &*store;
    assert_eq!(made(store).await, [], "nothing was recorded");
    for (run, call) in [("one", "a"), ("two", "b"), ("one", "c")] {
        put(store, run, call).await;
    }
    let first = made(store).await;
    assert_eq!(heads(&first), [("one", 1), ("two", 0)], "the heads of all runs");
    assert_eq!(made(store).await, [], "nothing new was recorded");
    put(store, "two", "d").await;
    let second = made(store).await;
    assert_eq!(heads(&second), [("two", 1)], "the heads of runs with new records");
    assert_eq!(
        (second[0].number, Some(second[0].previous)),
        (first.len() as u64, first.last().map(|last| last.hash)),
        "one chain"
    );
    let listed =
        listed(store, Query::new(DocumentKind::Anchor)).await.into_iter().filter_map(|listed| match listed.document {
            Document::Anchor(anchor) => Some(*anchor),
            _ => None,
        });
    let all: Vec<_> = first.into_iter().chain(second).collect();
    assert_eq!(listed.collect::<Vec<_>>(), all, "anchors read as they were made");
    let checked = verified(store, &all).await;
    assert_eq!((checked.records, checked.runs, checked.anchors, checked.unanchored), (4, 2, all.len() as u64, 0));
    put(store, "one", "e").await;
    let checked = verified(store, &all).await;
    assert_eq!((checked.records, checked.unanchored), (5, 1), "later records are not anchored yet");
}

pub(super) async fn anchors_are_made_by_several(store: Arc<dyn Store>) {
    let mut tasks = Vec::new();
    for task in 0..4 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            let mut count = 0;
            for turn in 0..8 {
                put(&*store, &format!("run-{task}"), &turn.to_string()).await;
                count += store.anchor(|_| {}).await.expect("it anchors");
            }
            count
        }));
    }
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("no task fails");
    }
    let checked = verified(&*store, &[]).await;
    assert_eq!((checked.records, checked.runs, checked.anchors, checked.unanchored), (32, 4, count, 0));
}
