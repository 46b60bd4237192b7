//! The store in PostgreSQL, on a server of this test's own: `cargo test -p tests --features postgres --test postgres`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tests::postgres::Postgres;
use tool_runtime::store::{SqlOptions, SqlStore, Store, conformance};

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
