//! What earlier versions wrote is read: `older/1.sql` holds what version 1 wrote.

use sqlx::pool::PoolOptions;
use sqlx::sqlite::SqliteConnectOptions;

use crate::store::sql::connection::Database;
use crate::store::sql::tests::{open, put};
use crate::store::{Chain, Document, Key, Query, RecordFilter, Space, Store};

#[tokio::test]
async fn a_database_of_version_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let connect = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let pool = PoolOptions::new().connect_with(connect).await.unwrap();
    let mut old = Database::Sqlite(pool.clone()).connection().await.unwrap();
    old.run("CREATE TABLE tool_runtime_schema (version BIGINT NOT NULL); INSERT INTO tool_runtime_schema VALUES (1)")
        .await
        .unwrap();
    old.run(include_str!("../migrations/1.sqlite.sql")).await.unwrap();
    old.run(include_str!("older/1.sql")).await.unwrap();
    drop(old);
    pool.close().await;

    let store = open(&path).await.unwrap();
    let documents =
        store.read(&[Key::waiting("run", None, Some("ada"), &"waits".into()), Key::run("run")]).await.unwrap();
    assert!(matches!(&documents[0], Some(Document::Waiting(waiting)) if !waiting.call.arguments.as_str().is_empty()));
    assert!(matches!(&documents[1], Some(Document::Run(run)) if &*run.document == "saved"));
    let calls = store.list(&Query::new(Space::Call)).await.unwrap();
    assert_eq!(calls.iter().map(|listed| listed.document.is_settled()).collect::<Vec<_>>(), [true, false]);
    put(&store, "new").await.unwrap();
    let records = store.records(&RecordFilter::run("run")).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records)), (3, Ok(())), "its chain continues");
}
