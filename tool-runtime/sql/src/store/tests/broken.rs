//! Tests a full disk, a locked file, a database of another version, and damaged files. Each gives a typed error and
//! leaves no partial state, and the next call works.

use std::fs;

use tool_runtime::ToolInvocationRecord;
use tool_runtime::store::{Chain, Key, RecordFilter, Store, StoreError, StoredDocument, Transaction, Verification};

use crate::store::tests::{edit, kept, new, open, put};

/// Creates a store with little room. The limit is per connection, so the store has only one.
async fn small() -> (tempfile::TempDir, super::SqlStore) {
    let folder = tempfile::tempdir().unwrap();
    let options = super::SqlOptions::new().connections(1);
    let store = super::SqlStore::sqlite(folder.path().join("store.db"), options).await.unwrap();
    edit(&store, "PRAGMA max_page_count = 40").await;
    (folder, store)
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_no_half_state() {
    let (_folder, store) = small().await;
    put(&store, "a").await.unwrap();
    let key = Key::run("run");
    // The store keeps equal parts of a text once.
    let large = (0..1 << 17).map(|number| format!("{number:08}")).collect::<Vec<_>>().concat();
    let write = move |transaction: &mut Transaction| {
        transaction.append(ToolInvocationRecord::example("run", "b"))?;
        transaction.put(StoredDocument::example("run", &large, None))
    };
    let error = store.update(vec![key.clone()], Box::new(write)).await.unwrap_err();
    assert_eq!(error.code(), "store_disk_full");
    assert!(std::error::Error::source(&error).is_some());
    assert!(store.read(&[key]).await.unwrap()[0].is_none(), "the document was not written");
    assert_eq!(kept(&store).await, ["a"], "and neither was the record");
    put(&store, "c").await.unwrap();
    assert_eq!(kept(&store).await, ["a", "c"]);
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!(Chain::verify(&records), Ok(()));
}

#[tokio::test]
async fn what_the_database_refuses_fails_alone() {
    let (_folder, store) = new().await;
    edit(
        &store,
        "CREATE TRIGGER refuse BEFORE INSERT ON tool_runtime_documents WHEN NEW.parts IS NOT NULL \
         BEGIN SELECT RAISE(ROLLBACK, 'too large'); END",
    )
    .await;
    let large = "x".repeat(1 << 20);
    let write = move |transaction: &mut Transaction| transaction.put(StoredDocument::example("large", &large, None));
    // The writes share a transaction.
    let receipts = [
        store.append(ToolInvocationRecord::example("run", "a").into()),
        store.update(vec![Key::run("large")], Box::new(write)),
        store.append(ToolInvocationRecord::example("run", "b").into()),
    ];
    let mut codes = Vec::new();
    for receipt in receipts {
        codes.push(receipt.await.map_err(|error| error.code()));
    }
    assert_eq!(codes, [Ok(()), Err("store_unavailable"), Ok(())]);
    assert_eq!(kept(&store).await, ["a", "b"]);
}

#[tokio::test]
async fn a_file_that_somebody_holds_is_an_error() {
    let (folder, store) = new().await;
    let other = open(&folder.path().join("store.db")).await.unwrap();
    let mut holder = other.0.database.connection().await.unwrap();
    holder.run("BEGIN IMMEDIATE").await.unwrap();
    assert_eq!(put(&store, "a").await, Err("store_locked"));
    assert!(kept(&store).await.is_empty(), "readers are not held up");
    holder.run("ROLLBACK").await.unwrap();
    assert_eq!(put(&store, "b").await, Ok(()));
    assert_eq!(kept(&store).await, ["b"]);
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let (folder, store) = new().await;
    edit(&store, "UPDATE tool_runtime_schema SET version = version + 1").await;
    let error = open(&folder.path().join("store.db")).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found, known } if found == known + 1));
    assert_eq!(error.code(), "store_newer");
    edit(&store, "UPDATE tool_runtime_schema SET version = version - 1").await;
    assert!(open(&folder.path().join("store.db")).await.is_ok());
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    fs::write(&path, "Dear diary, ".repeat(1000)).unwrap();
    assert_eq!(open(&path).await.unwrap_err().code(), "store_corrupt");
    assert!(fs::read_to_string(&path).unwrap().starts_with("Dear diary"), "and left as it is");
    assert_eq!(open(&folder.path().join("no/such/folder/store.db")).await.unwrap_err().code(), "store_unavailable");
}

#[tokio::test]
async fn several_open_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let path = path.clone();
            tokio::spawn(async move {
                let options = super::SqlOptions::new();
                let store = super::SqlStore::sqlite(path, options).await.unwrap();
                put(&store, &number.to_string()).await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let store = open(&path).await.unwrap();
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records)), (8, Ok(())));
}

#[tokio::test]
async fn a_log_that_was_cut_loses_the_end_and_nothing_else() {
    let (folder, store) = new().await;
    let ids: Vec<_> = (0..40).map(|number| number.to_string()).collect();
    for id in &ids {
        put(&store, id).await.unwrap();
    }
    let mut exported = Vec::new();
    (&store as &dyn Store).anchor(|anchor| exported.push(anchor.clone())).await.unwrap();
    // Copied while open, as a crash would leave it.
    let (from, to) = (folder.path().join("store.db"), folder.path().join("cut.db"));
    fs::copy(&from, &to).unwrap();
    let log = fs::read(from.with_extension("db-wal")).unwrap();
    fs::write(to.with_extension("db-wal"), &log[..log.len() * 2 / 3]).unwrap();
    let cut = open(&to).await.unwrap();
    let found = kept(&cut).await;
    assert!(!found.is_empty() && found.len() < ids.len() && ids.starts_with(&found), "{found:?}");
    // The anchor was lost together with its records; its export identifies the first of them.
    let verified = Verification::of_store(&cut, &exported, |_| {}).await.unwrap();
    let lost = verified.findings.first().expect("the anchor is ahead");
    let first = lost.record().map(|(_, sequence)| sequence);
    assert_eq!((lost.code(), first), ("records_cut", Some(found.len() as u64)));
    assert_eq!(put(&cut, "next").await, Ok(()));
    let records = cut.records(&RecordFilter::default()).await.unwrap();
    assert_eq!(Chain::verify(&records), Ok(()));
}

#[tokio::test]
async fn an_edited_record_is_named() {
    let (_folder, store) = new().await;
    for call in ["a", "b", "c"] {
        put(&store, call).await.unwrap();
    }
    edit(
        &store,
        "UPDATE tool_runtime_records SET body = replace(body, '\"executed\":true', '\"executed\":false') WHERE call_id = 'b'",
    )
    .await;
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!(Chain::verify(&records).unwrap_err().index(), Some(1));
    edit(&store, "UPDATE tool_runtime_records SET body = '{}' WHERE call_id = 'b'").await;
    assert_eq!(store.records(&RecordFilter::default()).await.unwrap_err().code(), "store_corrupt");
    assert_eq!(put(&store, "d").await, Ok(()), "the next record is kept");
    let last = store.records(&RecordFilter { after: 2, ..RecordFilter::default() }).await.unwrap();
    assert_eq!((last.len(), Chain::verify(&last)), (2, Ok(())));
}

#[tokio::test]
async fn a_document_that_cannot_be_read_is_an_error() {
    let (_folder, store) = new().await;
    let key = Key::run("run");
    let write = |transaction: &mut Transaction| transaction.put(StoredDocument::example("run", "1", None));
    store.update(vec![key.clone()], Box::new(write)).await.unwrap();
    edit(&store, "UPDATE tool_runtime_documents SET body = '{\"run\":{}}'").await;
    assert_eq!(store.read(std::slice::from_ref(&key)).await.unwrap_err().code(), "store_corrupt");
    let ran = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let change = {
        let ran = std::sync::Arc::clone(&ran);
        move |_: &mut Transaction| {
            ran.store(true, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        }
    };
    assert_eq!(store.update(vec![key], Box::new(change)).await.unwrap_err().code(), "store_corrupt");
    assert!(!ran.load(std::sync::atomic::Ordering::Relaxed), "no change runs on what cannot be read");
}
