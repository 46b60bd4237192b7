//! The stores in databases.

use std::sync::Arc;

use crate::store::sql::{SqlOptions, SqlStore};
use crate::store::{Store, conformance};

#[cfg(feature = "sqlite")]
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
