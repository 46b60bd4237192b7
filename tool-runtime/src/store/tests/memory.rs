//! The bounds of the store in memory.

use crate::store::tests::{record, waiting};
use crate::store::{Chain, MemoryStore, RecordFilter, Store, StoreError};

fn small() -> MemoryStore {
    MemoryStore::with_limits(3, 2)
}

async fn put(store: &MemoryStore, calls: std::ops::Range<usize>) {
    for call in calls {
        store.put(record("run", &format!("call_{call}"), Some(1))).await.unwrap();
    }
}

#[tokio::test]
async fn the_oldest_closed_records_make_room() {
    let (store, all) = (small(), RecordFilter::default());
    put(&store, 0..2).await;
    let mut read = store.records(&all).await.unwrap();
    put(&store, 2..4).await;
    let later = store.records(&all).await.unwrap();
    assert_eq!((later.len(), later[0].tool_call_id.as_str(), store.dropped()), (3, "call_1", 1));
    // What was read before and what was read later still make one chain, since nothing was dropped unread.
    read.extend_from_slice(&later[1..]);
    assert_eq!(Chain::new().follow(&read), Ok(()));
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
    assert_eq!(Chain::new().follow(&read).unwrap_err().at, 3);
}

#[tokio::test]
async fn what_is_open_is_refused_rather_than_dropped() {
    let store = small();
    for (call, kept) in [("a", true), ("b", true), ("c", false), ("a", true)] {
        assert_eq!(store.put(record("run", call, None)).await.is_ok(), kept, "{call}");
    }
    store.put(record("run", "a", Some(1))).await.unwrap();
    store.put(record("run", "c", None)).await.unwrap();
    store.suspend(waiting("run", "a", 1)).await.unwrap();
    store.suspend(waiting("run", "b", 1)).await.unwrap();
    assert!(matches!(store.suspend(waiting("run", "c", 1)).await, Err(StoreError::Full)));
}
