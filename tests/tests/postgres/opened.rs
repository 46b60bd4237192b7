//! Databases that cannot be opened: the error names the cause, the place and the correction, without the secrets of the
//! URL. A permanent error is not retried.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tests::postgres::Postgres;
use tests::stored::json_of;
use tool_runtime::store::{Chain, DocumentKind, Key, Query, RecordFilter, Store, StoreError};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::proxied::proxy;
use crate::{open, put};

const SECRET: &str = "hunter2";

/// Opens a database that is refused, with so much patience that a test which waits for its end is noticed.
async fn refused(url: &str, options: SqlOptions) -> StoreError {
    let error = SqlStore::postgres(url, options).await.unwrap_err();
    assert!(!error.to_string().contains(SECRET) && !error.detail().contains(SECRET), "{}", error.detail());
    error
}

#[track_caller]
fn says(error: &StoreError, code: &str, words: &[&str]) {
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "`{word}` in: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_address_is_said_once() {
    let server = Postgres::start();
    server.sql("CREATE ROLE guarded LOGIN PASSWORD 'right'; CREATE ROLE reader LOGIN");
    let (port, counts) = proxy(&server).await;
    let place = format!("127.0.0.1:{port}");
    let at = |user: &str, database: &str| format!("postgres://{user}:{SECRET}@{place}/{database}");
    let patient = SqlOptions::new().patience(Duration::from_mins(10));
    for (url, words) in [
        (at("guarded", "postgres"), ["password", "`guarded`", "PGPASSWORD"]),
        (at("nemo", "postgres"), ["`nemo`", "pg_hba.conf", "URL"]),
        (at("app", "nowhere"), ["`nowhere`", "CREATE DATABASE", "URL"]),
        (format!("{}?sslmode=require", at("app", "postgres")), ["TLS", "ssl = on", "sslmode=prefer"]),
    ] {
        let before = counts.taken();
        let error = refused(&url, patient.clone()).await;
        says(&error, "store_misconfigured", &words);
        says(&error, "store_misconfigured", &[&place]);
        assert_eq!(counts.taken() - before, 1, "{error}");
    }
    let before = counts.taken();
    for (url, words) in [
        (format!("{}?sslmode=bogus", at("app", "postgres")), ["sslmode", "verify-full"]),
        (format!("postgres://app:{SECRET}@[::bad/x"), ["URL", "postgres://USER@HOST"]),
    ] {
        says(&refused(&url, patient.clone()).await, "store_misconfigured", &words);
    }
    assert_eq!(counts.taken(), before, "an address that cannot be read is not tried");
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let url = format!("postgres://app:{SECRET}@{closed}/postgres");
    let missing = refused(&url, SqlOptions::new().patience(Duration::from_millis(1))).await;
    says(&missing, "store_unavailable", &[&closed.to_string(), "check that it runs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_database_is_said() {
    let server = Postgres::start();
    server.sql("CREATE ROLE reader LOGIN");
    server.sql("CREATE DATABASE narrow ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let url = server.url("app");
    let narrow = refused(&url.replace("/postgres?", "/narrow?"), SqlOptions::new()).await;
    says(&narrow, "store_misconfigured", &["LATIN1", "ENCODING 'UTF8'"]);

    let hidden = refused(&url.replace("app@", "reader@"), SqlOptions::new()).await;
    says(&hidden, "store_misconfigured", &["search_path", "USAGE"]);
    server.sql("GRANT USAGE ON SCHEMA app TO reader");
    let rights = refused(&url.replace("app@", "reader@"), SqlOptions::new()).await;
    says(&rights, "store_misconfigured", &["GRANT", "store migrate"]);
    let schema = refused(&url.replace("%3Dapp", "%3Dnowhere"), SqlOptions::new()).await;
    says(&schema, "store_misconfigured", &["search_path"]);

    let older = refused(&url, SqlOptions::new().migrate(false)).await;
    says(&older, "store_older", &["no tables", "store migrate"]);
    server.sql("CREATE TABLE app.tool_runtime_documents (title text)");
    let taken = refused(&url, SqlOptions::new()).await;
    says(&taken, "store_misconfigured", &["\"tool_runtime_documents\"", "table_prefix"]);
    server.sql("CREATE TABLE app.documents (title text); CREATE TABLE app.records (x int)");
    let prefixed = SqlStore::postgres(&url, SqlOptions::new().table_prefix("chat_")).await.expect("another prefix");
    put(&prefixed, "run", "a").await.unwrap();
    server.sql("ALTER TABLE app.chat_records RENAME COLUMN tenant TO customer");
    let shape = refused(&url, SqlOptions::new().table_prefix("chat_")).await;
    says(&shape, "store_misconfigured", &["tenant", "restore"]);
    let statement = refused(&url, SqlOptions::new().table_prefix("x; DROP TABLE documents; --")).await;
    says(&statement, "store_misconfigured", &["prefix of the tables is invalid"]);
    assert_eq!(server.sql("SELECT count(*) FROM app.documents"), "0");
}

/// A server that offers TLS with a certificate for 127.0.0.1, and nothing behind it.
fn tls(address: &str) -> (u16, Arc<AtomicUsize>) {
    let pem = |name: &str| tests::wire::fixtures("tls").join(name);
    let chain = CertificateDer::pem_file_iter(pem("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(pem("server.key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind((address, 0)).unwrap();
    let (port, taken) = (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&taken);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            if stream.read_exact(&mut [0; 8]).is_err() || stream.write_all(b"S").is_err() {
                continue;
            }
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let _ = rustls::StreamOwned::new(connection, stream).read(&mut [0; 1]);
        }
    });
    (port, taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_does_not_fit_is_named_and_not_tried_again() {
    let authority = tests::wire::fixtures("tls").join("authority.pem");
    let patient = SqlOptions::new().patience(Duration::from_mins(10));
    let (port, taken) = tls("127.0.0.2");
    let url = format!("postgres://app:{SECRET}@127.0.0.2:{port}/postgres?sslmode=verify-full");
    let named = refused(&format!("{url}&sslrootcert={}", authority.display()), patient.clone()).await;
    says(&named, "store_misconfigured", &["is not for `127.0.0.2`", "verify-ca"]);
    let unknown = refused(&url, patient.clone()).await;
    says(&unknown, "store_misconfigured", &["unknown authority", "sslrootcert=FILE"]);
    assert_eq!(taken.load(Ordering::Relaxed), 2, "each was tried once");
    let missing = refused(&format!("{url}&sslrootcert=/no/such/file"), patient).await;
    says(&missing, "store_misconfigured", &["sslrootcert", "does not exist"]);
}

const OLD: &str = include_str!("../../../tool-runtime/sql/src/store/tests/older/1.postgres.sql");
const INDEX: &str = include_str!("../../../tool-runtime/sql/src/store/tests/older/2.postgres.sql");
const LAST: &str = include_str!("../../../tool-runtime/sql/src/store/tests/older/3.postgres.sql");
const ROWS: &str = include_str!("../../../tool-runtime/sql/src/store/tests/older/rows.sql");

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_migrated_once_and_loses_nothing() {
    let server = Postgres::start();
    drop(open(&server.url("fresh")).await);
    let renamed = ROWS.replace("INTO documents", "INTO tool_runtime_documents");
    let renamed = renamed.replace("INTO records", "INTO tool_runtime_records");
    let [first, second] = ["", INDEX].map(|index| format!("{OLD} {index} {ROWS}"));
    for (version, contents) in [(1, first), (2, second), (3, format!("{LAST} {renamed}"))] {
        let schema = format!("old{version}");
        let url = server.url(&schema);
        server.sql(&format!(
            "SET search_path = {schema}; CREATE TABLE tool_runtime_schema (version BIGINT NOT NULL); \
             INSERT INTO tool_runtime_schema VALUES ({version}); {contents}"
        ));
        // New tables would be made in another schema.
        let url = url.replace(&format!("%3D{schema}"), &format!("%3Dpublic,{schema}"));
        let refused = SqlStore::postgres(&url, SqlOptions::new().migrate(false)).await.unwrap_err();
        assert!(
            matches!(refused, StoreError::Older { found, known } if found == version && known > version),
            "{refused}"
        );
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
        let store = stores.pop().unwrap();
        let run = store.read(&[Key::run("run")]).await.unwrap().pop().flatten();
        let run = run.expect("the run");
        assert_eq!(json_of(&run)["run"]["document"], "saved");
        let lanes = store.lanes(Timestamp::MAX, "", 10).await.unwrap();
        assert_eq!((lanes.len(), Some(&lanes[0].lane)), (1, run.lane().as_ref()), "its runs are in the queue");
        assert_eq!(store.list(&Query::new(DocumentKind::Call)).await.unwrap().len(), 2);
        put(&store, "run", "new").await.unwrap();
        let records = store.records(&RecordFilter::run("run")).await.unwrap();
        assert_eq!((records.len(), Chain::verify(&records)), (3, Ok(())), "its chain continues");
        let names = |schema: &str| {
            server.sql(&format!(
                "SELECT relkind, relname, obj_description(oid), pg_get_indexdef(oid) FROM pg_class WHERE relnamespace = \
                 '{schema}'::regnamespace ORDER BY relname"
            ))
        };
        assert_eq!(names(&schema).replace(&format!("{schema}."), "fresh."), names("fresh"), "as new ones are");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_open_writes_nothing_once_another_has_migrated() {
    let server = Postgres::start();
    let store = open(&server.url("moved")).await;
    put(&store, "run", "a").await.unwrap();
    server.sql("UPDATE moved.tool_runtime_schema SET version = version + 1");
    assert_eq!(put(&store, "run", "b").await, Err("store_newer"));
    server.sql("UPDATE moved.tool_runtime_schema SET version = version - 1");
    assert_eq!(put(&store, "run", "c").await, Ok(()));
    assert_eq!(store.records(&RecordFilter::default()).await.unwrap().len(), 2);
    server.sql("INSERT INTO moved.tool_runtime_schema SELECT version + 1 FROM moved.tool_runtime_schema");
    assert_eq!(put(&store, "run", "d").await, Err("store_newer"), "a second row counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_of_the_server_describes_every_column() {
    let server = Postgres::start();
    drop(open(&server.url("described")).await);
    let without = server.sql(
        "SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = \
         'described'::regnamespace AND relkind = 'r' AND attnum > 0 AND (col_description(attrelid, attnum) IS NULL OR \
         obj_description(attrelid) IS NULL)",
    );
    assert_eq!(without, "");
}
