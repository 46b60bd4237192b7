//! Tests that rows of earlier versions are read and keep their order. Version 1 wrote the rows in `older/rows.sql`.

use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tool_runtime::call::Decider;
use tool_runtime::store::{
    Chain, DocumentKind, Key, Query, RecordFilter, Retention, Store, StoreError, StoredDocument, Transaction,
    Verification,
};
use tool_runtime::tool::Hash;

use crate::store::SqlOptions;
use crate::store::connection::{Connections, Database};
use crate::store::migrate::VERSION;
use crate::store::prefix::Prefix;
use crate::store::tests::parts::{keep, parts};
use crate::store::tests::{edit, kept, new, open, put, text, text_of};

/// Creates a file as a version of this library left it.
async fn old(path: &std::path::Path, version: i64) {
    let connect = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let pool = PoolOptions::new().connect_with(connect).await.unwrap();
    let database = Database { connections: Connections::Sqlite(pool.clone()), prefix: Prefix::default() };
    let mut old = database.connection().await.unwrap();
    let rows = include_str!("older/rows.sql");
    if version == 3 {
        old.run(include_str!("older/3.sqlite.sql")).await.unwrap();
        let rows = rows.replace("INTO documents", "INTO tool_runtime_documents");
        old.run(rows.replace("INTO records", "INTO tool_runtime_records")).await.unwrap();
    } else {
        old.run(include_str!("older/1.sqlite.sql")).await.unwrap();
        if version == 2 {
            old.run(include_str!("older/2.sqlite.sql")).await.unwrap();
        }
        old.run(rows).await.unwrap();
    }
    let schema = "CREATE TABLE tool_runtime_schema (version BIGINT NOT NULL); INSERT INTO tool_runtime_schema VALUES";
    old.run(format!("{schema} ({version})")).await.unwrap();
    drop(old);
    pool.close().await;
}

#[tokio::test]
async fn a_database_of_an_older_version_is_migrated_and_loses_nothing() {
    for version in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        old(&path, version).await;
        let refused = super::SqlStore::sqlite(&path, SqlOptions::new().migrate(false)).await.unwrap_err();
        assert!(matches!(refused, StoreError::Older { found, known: VERSION } if found == version), "{refused}");

        let store = open(&path).await.unwrap();
        let documents =
            store.read(&[Key::waiting("run", None, Some("ada"), &"waits".into()), Key::run("run")]).await.unwrap();
        let waits = documents[0].as_ref().expect("the call that waits");
        let arguments = store.pending(&waits.key).await.unwrap().unwrap().arguments().to_owned();
        assert!(!arguments.is_empty());
        assert_eq!(documents[1].as_ref().map(text).as_deref(), Some("saved"));
        let lanes = store.lanes(jiff::Timestamp::MAX, "", 10).await.unwrap();
        assert_eq!(lanes.iter().map(|run| &*run.run_id).collect::<Vec<_>>(), ["run"], "its runs are in the queue");
        assert_eq!(Some(&lanes[0].lane), documents[1].as_ref().and_then(StoredDocument::lane).as_ref());
        let until = documents[1].as_ref().and_then(StoredDocument::leased_until).unwrap();
        let leased = store.depth(until - jiff::SignedDuration::from_secs(1), None).await.unwrap();
        assert_eq!((leased.leased, leased.due, leased.waiting), (1, 0, 0));
        assert_eq!(store.due_runs(until + jiff::SignedDuration::from_secs(1), None, 10).await.unwrap(), lanes);
        let calls = store.list(&Query::new(DocumentKind::Call)).await.unwrap();
        assert_eq!(calls.iter().map(StoredDocument::is_settled).collect::<Vec<_>>(), [true, false]);
        put(&store, "new").await.unwrap();
        let records = store.records(&RecordFilter::run("run")).await.unwrap();
        assert_eq!((records.len(), Chain::verify(&records)), (3, Ok(())), "its chain continues");
        super::SqlStore::sqlite(&path, SqlOptions::new().migrate(false)).await.expect("it needs no migration now");
        old_records_are_purged_not_erased(&store).await;

        let mut connection = store.0.database.connection().await.unwrap();
        let names =
            "SELECT name FROM sqlite_master WHERE name NOT LIKE '%tool_runtime_%' AND name <> 'sqlite_sequence'";
        assert!(connection.rows::<(String,)>(names, []).await.unwrap().is_empty(), "nothing has its old name");
        // The indexes equal those of a new database.
        let (_folder, fresh) = new().await;
        let indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name";
        let mut other = fresh.0.database.connection().await.unwrap();
        assert_eq!(
            connection.rows::<(String, Option<String>)>(indexes, []).await.unwrap(),
            other.rows::<(String, Option<String>)>(indexes, []).await.unwrap()
        );
    }
}

/// The hash of an earlier version's record covers its values, so they cannot be erased.
async fn old_records_are_purged_not_erased(store: &super::SqlStore) {
    edit(store, "DELETE FROM tool_runtime_documents").await;
    let by = Decider::new("grace").because("Asked for.");
    let report = Retention::new(store, by.clone()).erase("ada", None).await.unwrap();
    assert_eq!((report.records, report.kept_runs), (1, 1), "the new record is erased, the old ones are not");
    assert_eq!(report.kept, [("run".into(), "not_erasable")]);
    let records = store.records(&RecordFilter::run("run")).await.unwrap();
    let erased: Vec<_> = records.iter().map(|sealed| sealed.record.is_erased()).collect();
    assert_eq!(erased, [false, false, true, false], "the last one is the record of the erasure");
    let verified = Verification::of_store(store, &[], |_| ()).await.unwrap();
    assert_eq!((verified.findings, verified.erased), (vec![], 1));
    let report = Retention::new(store, by).purge(Duration::ZERO).await.unwrap();
    assert_eq!((report.runs, report.records, report.kept_runs), (1, 4, 0));
    let verified = Verification::of_store(store, &[], |_| ()).await.unwrap();
    assert_eq!((verified.findings, verified.purged), (vec![], 4));
}

/// Version 4 has the same tables. Its runs have no time of their last write, and its holds and marks do not exist.
#[tokio::test]
async fn a_database_of_version_4_is_migrated_and_loses_nothing() {
    let (folder, store) = new().await;
    put(&store, "a").await.unwrap();
    let saved = StoredDocument::example("run", "saved", None);
    let write = move |change: &mut Transaction| change.put(saved.clone());
    store.update(vec![Key::run("run")], Box::new(write)).await.unwrap();
    edit(&store, "UPDATE tool_runtime_schema SET version = 4").await;
    drop(store);
    let path = folder.path().join("store.db");
    let refused = super::SqlStore::sqlite(&path, SqlOptions::new().migrate(false)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Older { found: 4, known: VERSION }), "{refused}");
    for prefix in ["tool_runtime_", "other_"] {
        super::SqlStore::sqlite(&path, SqlOptions::new().table_prefix(prefix)).await.unwrap();
    }
    let store = open(&path).await.unwrap();
    let run = store.read(&[Key::run("run")]).await.unwrap().pop().flatten();
    assert_eq!((kept(&store).await, run.as_ref().map(text).as_deref()), (vec!["a".to_owned()], Some("saved")));
    put(&store, "b").await.unwrap();
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records)), (2, Ok(())));
}

/// Version 5 has one list of all parts of a text, and the parts of a longer text are longer.
#[tokio::test]
async fn a_long_text_of_version_5_is_read_and_cut_again_by_the_next_step() {
    let (folder, store) = new().await;
    let [text, next] =
        [300, 301].map(|lines| (0..lines).map(|line| format!("{line:0>1000}")).collect::<Vec<_>>().concat());
    keep(&store, "run", text.clone()).await.unwrap();
    edit(&store, "DELETE FROM tool_runtime_parts; UPDATE tool_runtime_schema SET version = 5").await;
    let mut list = Vec::new();
    for part in text.as_bytes().chunks(3000).map(|part| std::str::from_utf8(part).unwrap()) {
        let name = Hash::sha256(part).to_string()[..32].to_owned();
        edit(&store, &format!("INSERT INTO tool_runtime_parts VALUES ('run', '{name}', '{part}')")).await;
        list.push(name);
    }
    assert!(list.len() > 64, "longer than a list is now");
    edit(&store, &format!("UPDATE tool_runtime_documents SET parts = '{}'", list.join(" "))).await;
    drop(store);

    let store = open(&folder.path().join("store.db")).await.unwrap();
    assert!(text_of(&store, "run").await == Some(text));
    keep(&store, "run", next.clone()).await.unwrap();
    assert!(text_of(&store, "run").await == Some(next.clone()));
    let after = parts(&store).await;
    let (_folder, fresh) = new().await;
    keep(&fresh, "run", next).await.unwrap();
    assert_eq!(after, parts(&fresh).await, "no old part is left");
}

/// The migration reads and writes the runs in pages; a run that it cannot read stays as it is.
#[tokio::test]
async fn every_due_run_of_an_older_database_gets_its_lane() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    old(&path, 3).await;
    let pool = PoolOptions::new().connect_with(SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let database = Database { connections: Connections::Sqlite(pool.clone()), prefix: Prefix::default() };
    let mut connection = database.connection().await.unwrap();
    connection
        .run(
            "WITH RECURSIVE more (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM more WHERE n < 700) \
             INSERT INTO tool_runtime_documents (space, scope, id, due, body) SELECT space, 'run ' || n, id, due, \
             CASE WHEN n % 100 = 0 THEN '{}' ELSE replace(body, '\"run_id\":\"run\"', '\"run_id\":\"run ' || n || '\"') END \
             FROM tool_runtime_documents, more WHERE space = 'run'",
        )
        .await
        .unwrap();
    drop(connection);
    pool.close().await;
    let store = open(&path).await.unwrap();
    let mut connection = store.0.database.connection().await.unwrap();
    let sql = "SELECT COUNT(*), COUNT(lane), COUNT(leased_until) FROM tool_runtime_documents WHERE space = 'run'";
    assert_eq!(connection.rows::<(i64, i64, i64)>(sql, []).await.unwrap(), [(701, 694, 694)]);
    drop(connection);
    let lane = store.read(&[Key::run("run 699")]).await.unwrap().pop().flatten().and_then(|run| run.lane());
    let listed = store.due_runs(jiff::Timestamp::MAX, lane.as_deref(), 1000).await.unwrap();
    assert_eq!(listed.len(), 694, "each is in the lane of its tenant");
}

#[tokio::test]
async fn a_new_database_is_not_made_where_that_is_forbidden() {
    let folder = tempfile::tempdir().unwrap();
    let refused = super::SqlStore::sqlite(folder.path().join("a.db"), SqlOptions::new().migrate(false)).await;
    let error = refused.unwrap_err();
    assert!(matches!(error, StoreError::Older { found: 0, .. }) && error.code() == "store_older", "{error}");
}

/// A process that opened the file before another process migrated it cannot write any more, and its error states this.
#[tokio::test]
async fn a_database_that_another_process_migrated_is_not_written_to() {
    let (_folder, store) = new().await;
    put(&store, "a").await.unwrap();
    edit(&store, &format!("UPDATE tool_runtime_schema SET version = {}", VERSION + 1)).await;
    let receipts = [put(&store, "b"), put(&store, "c")];
    for receipt in receipts {
        assert_eq!(receipt.await, Err("store_newer"));
    }
    edit(&store, "UPDATE tool_runtime_schema SET version = 2").await;
    assert_eq!(put(&store, "d").await, Err("store_older"), "an older copy was put back");
    edit(&store, &format!("UPDATE tool_runtime_schema SET version = {VERSION}")).await;
    assert_eq!(put(&store, "e").await, Ok(()));
    assert_eq!(kept(&store).await, ["a", "e"]);
}

#[tokio::test]
async fn a_version_that_is_not_one_row_is_refused() {
    for (rows, code) in [
        (&*format!("INSERT INTO tool_runtime_schema VALUES ({})", VERSION + 1), "store_newer"),
        (&*format!("INSERT INTO tool_runtime_schema VALUES ({VERSION})"), "store_misconfigured"),
        ("INSERT INTO tool_runtime_schema VALUES (3)", "store_misconfigured"),
        ("INSERT INTO tool_runtime_schema VALUES (2)", "store_misconfigured"),
        ("DELETE FROM tool_runtime_schema", "store_misconfigured"),
        ("UPDATE tool_runtime_schema SET version = 0", "store_misconfigured"),
        ("UPDATE tool_runtime_schema SET version = -1", "store_misconfigured"),
    ] {
        let (folder, store) = new().await;
        edit(&store, rows).await;
        for migrate in [true, false] {
            let options = SqlOptions::new().migrate(migrate);
            let error = super::SqlStore::sqlite(folder.path().join("store.db"), options).await.unwrap_err();
            assert_eq!(error.code(), code, "{rows}: {error}");
        }
    }
}

#[tokio::test]
async fn applications_share_a_database_by_their_prefixes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    // The application's own tables, with the names that an earlier version used.
    let connect = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let pool = PoolOptions::new().connect_with(connect).await.unwrap();
    let own = Database { connections: Connections::Sqlite(pool), prefix: Prefix::default() };
    let mut own = own.connection().await.unwrap();
    own.run("CREATE TABLE documents (title TEXT); CREATE TABLE records (x); CREATE TABLE orders_records (y)")
        .await
        .unwrap();
    let store = open(&path).await.unwrap();
    let other = super::SqlStore::sqlite(&path, SqlOptions::new().table_prefix("chat_")).await.unwrap();
    put(&store, "a").await.unwrap();
    put(&other, "b").await.unwrap();
    assert_eq!((kept(&store).await, kept(&other).await), (vec!["a".to_owned()], vec!["b".to_owned()]));

    let taken = super::SqlStore::sqlite(&path, SqlOptions::new().table_prefix("orders_")).await.unwrap_err();
    assert_eq!(taken.code(), "store_misconfigured");
    assert!(taken.to_string().contains("orders_records") && taken.to_string().contains("table_prefix"), "{taken}");
    own.run("DROP TABLE tool_runtime_documents; CREATE TABLE tool_runtime_documents (title TEXT)").await.unwrap();
    let shaped = open(&path).await.unwrap_err();
    assert_eq!(shaped.code(), "store_misconfigured", "{shaped}");
}
