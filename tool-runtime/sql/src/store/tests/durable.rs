//! The settings of an open SQLite file, and the tasks that a write wakes.

use std::time::Duration;

use tool_runtime::store::{DocumentKind, Key, Query, Store, StoredDocument, Transaction};

use crate::store::tests::{new, open};

#[tokio::test]
async fn every_connection_waits_for_the_disk() {
    let (_folder, store) = new().await;
    let mut connections = Vec::new();
    for _ in 0..3 {
        connections.push(store.0.database.connection().await.unwrap());
    }
    for connection in &mut connections {
        for (pragma, value) in [("synchronous", 2), ("fullfsync", 1), ("checkpoint_fullfsync", 1)] {
            let (found,) = connection.last::<(i64,)>(format!("PRAGMA {pragma}")).await.unwrap();
            assert_eq!(found, value, "{pragma}");
        }
        let (mode,) = connection.last::<(String,)>("PRAGMA journal_mode").await.unwrap();
        assert_eq!(mode, "wal");
    }
}

/// Stores a run that is due.
async fn keep(store: &super::SqlStore, id: String) {
    let key = Key::run(id.as_str());
    let write = move |transaction: &mut Transaction| {
        transaction.put(StoredDocument::example(&id, "1", Some(transaction.now())))
    };
    store.update(vec![key], Box::new(write)).await.unwrap();
}

#[tokio::test]
async fn a_write_wakes_a_waiter_of_its_process_before_its_next_poll() {
    let (_folder, store) = new().await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let waiter = store.clone();
    let woken = tokio::spawn(async move { waiter.changed().await });
    tokio::task::yield_now().await;
    // The clock stands still while a task is ready, so that only the wake-up ends the wait.
    let wakes = async {
        while !woken.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(wakes, keep(&store, "run".to_owned()));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_poll_finds_the_writes_of_another_process() {
    let (folder, store) = new().await;
    // A second store gets no wake-up from the first, just like another process.
    let other = open(&folder.path().join("store.db")).await.unwrap();
    let waiter = tokio::spawn(async move {
        let due = Query { due: Some(jiff::Timestamp::MAX), ..Query::new(DocumentKind::Run) };
        while other.list(&due).await.unwrap().is_empty() {
            other.changed().await;
        }
    });
    tokio::task::yield_now().await;
    keep(&store, "run".to_owned()).await;
    waiter.await.unwrap();
}
