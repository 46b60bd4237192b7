//! The store in PostgreSQL, on a server of this test's own: `cargo test -p tests --features postgres --test postgres`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

mod chat;
mod counted;
mod long;
mod opened;
mod proxied;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tests::postgres::Postgres;
use tests::stored::record;
use tool_runtime::store::{
    Chain, DocumentKind, Key, Query, RecordFilter, Store, StoreError, StoredDocument, Transaction,
};
use tool_runtime::testing::conformance;
use tool_runtime_sql::{SqlOptions, SqlStore};

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
         CREATE TRIGGER refuse BEFORE INSERT ON tool_runtime_records EXECUTE FUNCTION refuse()"
    ));
    assert_eq!(put(&store, "run", "b").await, Err("store_disk_full"));
    server.sql(&format!("{schema} DROP TRIGGER refuse ON tool_runtime_records"));
    assert_eq!(put(&store, "run", "c").await, Ok(()));

    let read_only = "ALTER DATABASE postgres SET default_transaction_read_only";
    server.sql(&format!("{read_only} = on"));
    let standby = SqlStore::postgres(&url, SqlOptions::new()).await.expect("what needs no migration is read");
    assert_eq!(put(&standby, "run", "d").await, Err("store_read_only"));
    assert_eq!(standby.records(&RecordFilter::default()).await.unwrap().len(), 2);
    server.sql(&format!("SET transaction_read_only = off; {read_only} = off"));

    // A table that somebody works on, until they are told to stop.
    server.sql("CREATE TABLE failing.released (x int)");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.sql(&format!(
                "{schema} BEGIN; LOCK tool_runtime_records IN EXCLUSIVE MODE; DO $$ BEGIN \
                 WHILE NOT EXISTS (SELECT FROM failing.released) LOOP PERFORM pg_sleep(0.05); END LOOP; END $$; COMMIT"
            ))
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
        server.sql("INSERT INTO failing.released VALUES (1)");
        assert_eq!(locked, Err("store_locked"));
    });
    // Every connection is cut; the next write detects it.
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND pid <> pg_backend_pid()",
    );
    assert_eq!(put(&store, "run", "f").await, Ok(()));

    server.sql(&format!(
        "{schema} UPDATE tool_runtime_records SET body = replace(body, '\"executed\":true', '\"executed\":false') WHERE call_id = 'c'"
    ));
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!(
        (records.len(), Chain::verify(&records).unwrap_err().index()),
        (3, Some(1)),
        "the edited record is named"
    );

    server.sql(&format!("{schema} UPDATE tool_runtime_schema SET version = version + 1"));
    let newer = SqlStore::postgres(&url, SqlOptions::new()).await.unwrap_err();
    assert!(matches!(newer, StoreError::Newer { found, known } if found == known + 1));
}

/// Writes a run with a document that cannot be compressed.
async fn keep(store: &SqlStore, run: &str, length: usize) -> Result<(), &'static str> {
    let key = Key::run(run);
    let run = run.to_owned();
    let noise: String = (0..length / 32).map(|_| uuid::Uuid::new_v4().simple().to_string()).collect();
    let write = move |transaction: &mut Transaction| {
        transaction.append(record(&run, "kept"))?;
        transaction.put(StoredDocument::example(&run, &noise, Some(transaction.now())))
    };
    store.update(vec![key], Box::new(write)).await.map_err(|error| error.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_the_server_is_an_error_and_no_half_state() {
    let mut server = Postgres::start();
    let store = open(&server.url("small")).await;
    if !server.small_disk() {
        eprintln!("no disk can be mounted here: another test has a trigger that fails like a full disk");
        return;
    }
    server.sql("ALTER TABLE small.tool_runtime_parts SET TABLESPACE small");
    keep(&store, "small", 1000).await.unwrap();
    assert_eq!(keep(&store, "large", 4 << 20).await, Err("store_disk_full"));
    assert!(store.read(&[Key::run("large")]).await.unwrap()[0].is_none(), "the document was not written");
    assert_eq!(store.records(&RecordFilter::default()).await.unwrap().len(), 1, "and neither was the record");
    assert_eq!(put(&store, "small", "next").await, Ok(()), "the next call works");
    server.sql("ALTER TABLE small.tool_runtime_parts SET TABLESPACE pg_default");
    keep(&store, "large", 4 << 20).await.unwrap();
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records)), (3, Ok(())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_lose_commits_is_refused() {
    let server = Postgres::start();
    let url = server.url("lossy");
    for setting in ["fsync", "full_page_writes"] {
        server.set(setting, "off");
        let error = SqlStore::postgres(&url, SqlOptions::new()).await.unwrap_err();
        assert!(matches!(&error, StoreError::MayLose { setting: named } if named == setting), "{error}");
        assert!(error.code() == "store_may_lose" && error.to_string().contains(&format!("`{setting}` off")));
        let store = SqlStore::postgres(&url, SqlOptions::new().may_lose_commits(true)).await.expect("it is accepted");
        put(&store, "run", setting).await.unwrap();
        server.set(setting, "on");
        assert_eq!(
            open(&url).await.records(&RecordFilter::default()).await.unwrap().last().unwrap().record.call_id().as_str(),
            setting
        );
    }
    // A setting that a transaction makes itself does not depend on the server's.
    server.set("synchronous_commit", "off");
    put(&open(&url).await, "run", "synchronous_commit").await.unwrap();
}

/// Waits until a run is due.
async fn found(store: SqlStore) {
    let mut due = Query::new(DocumentKind::Run);
    due.due = Some(Timestamp::MAX);
    while store.list(&due).await.unwrap().is_empty() {
        store.changed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_wakes_another_process_before_its_next_poll() {
    // While something blocks, the clock stands still: the next look never comes.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let blocked = tokio::task::spawn_blocking(move || stopped.recv().is_err());
    let server = Postgres::start();
    let url = server.url("woken");
    let (one, other) = (open(&url).await, open(&url).await);
    let woken = tokio::spawn(async move { other.changed().await });
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'") == "0" {
        tokio::task::yield_now().await;
    }
    keep(&one, "run", 0).await.unwrap();
    woken.await.unwrap();
    drop(stop);
    assert!(blocked.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_replaces_a_lost_notification() {
    let server = Postgres::start();
    let url = server.url("lost");
    // A function of the same name that notifies nobody, found before the server's own.
    server.sql(
        "CREATE TABLE lost.notified (xid bigint); CREATE FUNCTION lost.pg_notify(text, text) RETURNS void \
         LANGUAGE sql AS 'INSERT INTO lost.notified VALUES (txid_current())'",
    );
    let (one, other) = (open(&url.replace("%3Dlost", "%3Dlost,pg_catalog")).await, open(&url).await);
    let waiter = tokio::spawn(found(other));
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'") == "0" {
        tokio::task::yield_now().await;
    }
    keep(&one, "run", 0).await.unwrap();
    waiter.await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM lost.notified"), "1", "nobody else was told");
    // A transaction that notifies holds a lock of the whole server until its commit is on the disk.
    let writers = "(SELECT xmin::text::bigint FROM lost.tool_runtime_documents)";
    let inside = format!("SELECT count(*) FROM lost.notified WHERE xid IN {writers}");
    assert_eq!(server.sql(&inside), "0", "the transaction of the document notifies nobody");
}

/// The writes come while the first notification is being sent, however slow the machine is.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_writes_is_one_more_notification() {
    let server = Postgres::start();
    let url = server.url("burst");
    server.sql(
        "CREATE TABLE burst.notified (x int); CREATE TABLE burst.released (x int); \
         CREATE FUNCTION burst.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
         IF pg_try_advisory_xact_lock(7) THEN WHILE NOT EXISTS (SELECT FROM burst.released) LOOP \
         PERFORM pg_sleep(0.01); END LOOP; END IF; INSERT INTO burst.notified VALUES (1); END $$",
    );
    let sent = || server.sql("SELECT count(*) FROM burst.notified").parse::<usize>().unwrap();
    let store = open(&url.replace("%3Dburst", "%3Dburst,pg_catalog")).await;
    let mut writes = tokio::task::JoinSet::new();
    let mut write = |run: String| {
        let store = store.clone();
        writes.spawn(async move { keep(&store, &run, 0).await.unwrap() });
    };
    write("first".to_owned());
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "0" {
        tokio::task::yield_now().await;
    }
    // So many that another worker of the store takes some of them.
    (0..32).for_each(|number| write(format!("run {number}")));
    writes.join_next().await.unwrap().unwrap();
    assert_eq!(sent(), 0, "a write that has ended left its notification to the open window");
    server.sql("INSERT INTO burst.released VALUES (1)");
    while let Some(written) = writes.join_next().await {
        written.unwrap();
    }
    while sent() < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_in_a_transaction_has_none_of_it() {
    let mut server = Postgres::start();
    let store = SqlStore::postgres(&server.url("middle"), SqlOptions::new().patience(Duration::from_hours(1))).await;
    let store = store.unwrap();
    put(&store, "run", "before").await.unwrap();
    // The table is empty after a crash, so that the same write is held up once.
    server.sql(
        "SET search_path = middle; CREATE UNLOGGED TABLE held (x int); INSERT INTO held VALUES (1); \
         CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF EXISTS (SELECT FROM middle.held) THEN PERFORM pg_sleep(120); END IF; RETURN NEW; END $$; \
         CREATE TRIGGER hold AFTER INSERT ON tool_runtime_records FOR EACH ROW EXECUTE FUNCTION hold()",
    );
    let writer = store.clone();
    let written = tokio::spawn(async move { keep(&writer, "run", 100).await });
    while server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "0" {
        tokio::task::yield_now().await;
    }
    tokio::task::block_in_place(|| {
        server.kill();
        server.restart();
    });
    assert_eq!(server.sql("SELECT count(*) FROM middle.held"), "0");
    assert_eq!(written.await.unwrap(), Ok(()), "it is written again");
    let records = store.records(&RecordFilter::default()).await.unwrap();
    assert_eq!((records.len(), Chain::verify(&records)), (2, Ok(())), "once");
    assert!(store.read(&[Key::run("run")]).await.unwrap()[0].is_some());
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
         RETURN NEW; END $$; CREATE TRIGGER see BEFORE INSERT ON tool_runtime_records EXECUTE FUNCTION see()",
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
    let store = SqlStore::postgres(&server.url("killed"), SqlOptions::new().patience(Duration::from_hours(1))).await;
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

/// Ten thousand runs of workers, most of which have ended: the listings and the depth read them by their indexes.
#[tokio::test(flavor = "multi_thread")]
async fn no_listing_of_the_queue_reads_the_whole_table() {
    let server = Postgres::start();
    let url = server.url("plans");
    let store = open(&url).await;
    let schema = "SET search_path = plans;";
    server.sql(&format!(
        "{schema} INSERT INTO tool_runtime_documents (space, scope, id, due, body, lane) SELECT 'run', 'run ' || n, '', \
         CASE WHEN n % 10 = 0 THEN n END, repeat('x', 200), 'tenant ' || n % 500 || '/' FROM generate_series(1, 10000) AS n"
    ));
    server.sql("VACUUM ANALYZE plans.tool_runtime_documents");
    // The server counts the reads of a session at its end, at the latest.
    let scans = || {
        let sessions = "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
        while server.sql(sessions) != "1" {
            std::thread::sleep(Duration::from_millis(10));
        }
        let counts = "seq_scan || ' ' || COALESCE(idx_scan, 0) FROM pg_stat_user_tables";
        let counts = server.sql(&format!("SELECT {counts} WHERE relname = 'tool_runtime_documents'"));
        counts.split(' ').map(|count| count.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    drop(store);
    let before = scans();
    let store = open(&url).await;
    let now = Timestamp::from_microsecond(5000).unwrap();
    assert_eq!(store.due_runs(now, None, 256).await.unwrap().len(), 256);
    assert_eq!(store.due_runs(now, Some("tenant 20/"), 256).await.unwrap().len(), 10);
    assert_eq!(store.lanes(now, "", 256).await.unwrap().len(), 50);
    assert_eq!(store.depth(now, None).await.unwrap().due, 500);
    assert_eq!(store.depth(now, Some("tenant 20")).await.unwrap().due, 10);
    drop(store);
    let after = scans();
    // Opening a store checks the columns of the table with a scan that reads no row.
    assert!(after[0] - before[0] <= 1 && after[1] - before[1] > 50, "{before:?} {after:?}");
}
