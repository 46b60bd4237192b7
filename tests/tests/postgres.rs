//! The store in PostgreSQL, on a server of this test's own: `cargo test -p tests --features postgres --test postgres`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tests::postgres::Postgres;
use tool_runtime::store::{AuditRecord, Chain, RecordFilter, SqlOptions, SqlStore, Store, StoreError, conformance};

async fn open(url: &str) -> SqlStore {
    SqlStore::postgres(url, SqlOptions::new()).await.expect("it opens")
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_a_store() {
    let server = Postgres::start();
    let number = AtomicU32::new(0);
    conformance::check(|| async {
        let url = server.url(&format!("case_{}", number.fetch_add(1, Ordering::Relaxed)));
        Arc::new(open(&url).await) as Arc<dyn Store>
    })
    .await;
}

/// Appends a record of a call.
async fn put(store: &SqlStore, run: &str, call: &str) -> Result<(), &'static str> {
    store.append(record(run, call)).await.map_err(|error| error.code())
}

fn record(run: &str, call: &str) -> AuditRecord {
    let record = json!({"call": {
        "tool_call_id": call, "name": "core__add", "definition_hash": null, "arguments": {"masked": {}},
        "result": null, "outcome": "ok", "executed": true, "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:00:01Z", "run_id": run, "session_id": null, "conversation_id": null,
        "principal": null, "roles": [], "tenant": null, "violations": [], "caller": "direct", "decision": null,
        "validator": null, "repair": null,
    }});
    serde_json::from_value(record).expect("a record")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_refuses_is_a_typed_error_and_the_next_call_works() {
    let server = Postgres::start();
    let url = server.url("failing");
    let store = SqlStore::postgres(&url, SqlOptions::new().patience(Duration::from_millis(1500))).await.unwrap();
    let schema = "SET search_path = failing;";
    put(&store, "run", "a").await.unwrap();

    server.sql(&format!(
        "{schema} CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON records EXECUTE FUNCTION refuse()"
    ));
    assert_eq!(put(&store, "run", "b").await, Err("store_disk_full"));
    server.sql(&format!("{schema} DROP TRIGGER refuse ON records"));
    assert_eq!(put(&store, "run", "c").await, Ok(()));

    let read_only = "ALTER DATABASE postgres SET default_transaction_read_only";
    server.sql(&format!("{read_only} = on"));
    let standby = SqlStore::postgres(&url, SqlOptions::new()).await.expect("what needs no migration is read");
    assert_eq!(put(&standby, "run", "d").await, Err("store_read_only"));
    assert_eq!(standby.records(&RecordFilter::default()).await.unwrap().len(), 2);
    server.sql(&format!("SET transaction_read_only = off; {read_only} = off"));

    // A table that somebody works on.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.sql(&format!("{schema} BEGIN; LOCK records IN EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT"))
        });
        let locked = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                while server.sql("SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation IS NOT NULL")
                    == "0"
                {
                    tokio::task::yield_now().await;
                }
                put(&store, "run", "e").await
            })
        });
        assert_eq!(locked, Err("store_locked"));
    });
    // Every connection is cut; what is written next finds that out.
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND pid <> pg_backend_pid()",
    );
    assert_eq!(put(&store, "run", "f").await, Ok(()));

    server.sql(&format!(
        "{schema} UPDATE records SET body = replace(body, '\"executed\":true', '\"executed\":false') WHERE call_id = 'c'"
    ));
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records).unwrap_err().at), (3, 1), "the edited record is named");

    server.sql(&format!("{schema} UPDATE tool_runtime_schema SET version = version + 1"));
    let newer = SqlStore::postgres(&url, SqlOptions::new()).await.unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found, known } if found == known + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_commit_is_synchronous_and_several_make_the_tables() {
    let server = Postgres::start();
    server.sql("ALTER DATABASE postgres SET synchronous_commit = off");
    let url = server.url("shared");
    let opened: Vec<_> = (0..8)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { open(&url).await })
        })
        .collect();
    let mut stores = Vec::new();
    for store in opened {
        stores.push(store.await.unwrap());
    }
    server.sql(
        "SET search_path = shared; CREATE TABLE seen (setting text); CREATE FUNCTION see() RETURNS trigger \
         LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shared.seen VALUES (current_setting('synchronous_commit')); \
         RETURN NEW; END $$; CREATE TRIGGER see BEFORE INSERT ON records EXECUTE FUNCTION see()",
    );
    put(&stores[0], "run", "a").await.unwrap();
    assert_eq!(server.sql("SELECT setting FROM shared.seen"), "on");
    // One store waits for what another one writes.
    stores[1].changed().await;
    let heard = || server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
    while heard() == "0" {
        stores[1].changed().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_loses_and_doubles_nothing() {
    let mut server = Postgres::start();
    let store = SqlStore::postgres(&server.url("killed"), SqlOptions::new().patience(Duration::from_mins(1))).await;
    let store = store.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|writer: u32| {
            let (store, stop) = (store.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let (run, mut written) = (format!("run {}", writer % 4), 0);
                while !stop.load(Ordering::Relaxed) {
                    put(&store, &run, &format!("{writer}-{written}")).await.expect("it outlives the server");
                    written += 1;
                }
                written
            })
        })
        .collect();
    for _kill in 0..3 {
        let before = store.records(&RecordFilter::default()).await.unwrap().len();
        while store.records(&RecordFilter::default()).await.unwrap().len() < before + 50 {}
        tokio::task::block_in_place(|| {
            server.kill();
            server.restart();
        });
    }
    stop.store(true, Ordering::Relaxed);
    let mut expected = 0;
    for writer in writers {
        expected += writer.await.unwrap();
    }
    let records = store.records(&RecordFilter::default()).await.unwrap();
    let calls: BTreeSet<_> = records.iter().map(|sealed| sealed.record.call_id().to_string()).collect();
    assert_eq!((records.len(), calls.len()), (expected, expected), "each record once");
    assert_eq!(Chain::verify(&records), Ok(()));
}
