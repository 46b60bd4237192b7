//! Opens the store, SQLite or PostgreSQL, by its URL.

use std::sync::Arc;

use tool_runtime::store::{Store, StoreError};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// The default store: a file in the current folder.
pub const DEFAULT: &str = "sqlite:chat-service.db";

/// Opens `sqlite:FILE` or `postgres://USER@HOST/DATABASE`, and creates the tables.
///
/// # Errors
/// The database cannot be opened or reached.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match url.strip_prefix("sqlite:") {
        Some(file) => Arc::new(SqlStore::sqlite(file, SqlOptions::new()).await?),
        None => Arc::new(SqlStore::postgres(url, SqlOptions::new()).await?),
    })
}
