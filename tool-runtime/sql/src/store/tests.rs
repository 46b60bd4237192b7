//! Tests of SQLite with real files and their failures. The tests with a PostgreSQL server are in
//! `tests/tests/postgres/main.rs`.

#![cfg(feature = "sqlite")]

mod broken;
mod durable;
mod faults;
mod handed_over;
mod older;
mod pages;
mod parts;
mod plans;
mod removed;
mod unanswered;

pub(super) use faults::Faults;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tool_runtime::ToolInvocationRecord;
use tool_runtime::store::{Key, RecordFilter, Store, StoreError, StoredDocument};
use tool_runtime::testing::conformance;

use crate::store::{SqlOptions, SqlStore};

/// Opens a store in a file, with a short patience.
async fn open(path: &Path) -> Result<SqlStore, StoreError> {
    SqlStore::sqlite(path, SqlOptions::new().patience(Duration::from_millis(300))).await
}

/// Creates a store in a new file.
async fn new() -> (TempDir, SqlStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store.db")).await.unwrap();
    (folder, store)
}

/// Runs statements on a separate connection, as an operator could.
async fn edit(store: &SqlStore, sql: &str) {
    store.0.database.connection().await.unwrap().run(sql).await.unwrap();
}

async fn put(store: &SqlStore, call: &str) -> Result<(), &'static str> {
    store.append(ToolInvocationRecord::example("run", call).into()).await.map_err(|error| error.code())
}

/// Returns the text of a run.
fn text(document: &StoredDocument) -> String {
    let json: serde_json::Value = serde_json::from_str(&document.to_json().unwrap()).unwrap();
    json["run"]["document"].as_str().unwrap().to_owned()
}

/// Returns the stored text of a run.
async fn text_of(store: &SqlStore, run: &str) -> Option<String> {
    store.read(&[Key::run(run)]).await.unwrap()[0].as_ref().map(text)
}

async fn kept(store: &SqlStore) -> Vec<String> {
    let records = store.calls(&RecordFilter::run("run")).await.unwrap();
    records.iter().map(|record| record.tool_call_id.to_string()).collect()
}

#[tokio::test]
async fn sqlite_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::sync::atomic::AtomicU32::new(0);
    conformance::check(|| async {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.path().join(format!("{number}.db"));
        Arc::new(SqlStore::sqlite(path, SqlOptions::new()).await.unwrap()) as Arc<dyn Store>
    })
    .await;
}
