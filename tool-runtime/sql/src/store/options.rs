//! [`SqlOptions`]: how a store uses its database.

use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolOptions;

use crate::store::prefix::Prefix;

/// How a store uses its database.
///
/// ```
/// use std::time::Duration;
/// use tool_runtime_sql::SqlOptions;
///
/// let options = SqlOptions::new().connections(4).patience(Duration::from_secs(2)).table_prefix("orders_");
/// # drop(options);
/// ```
#[derive(Debug, Clone)]
pub struct SqlOptions {
    connections: u32,
    pub(super) patience: Duration,
    pub(super) may_lose: bool,
    pub(super) migrate: bool,
    prefix: Option<Arc<str>>,
}

impl SqlOptions {
    /// Returns the defaults: 16 connections, 10 seconds of patience, tables with the prefix `tool_runtime_` that are
    /// created and migrated, and no database that may lose committed data.
    #[must_use]
    pub const fn new() -> Self {
        Self { connections: 16, patience: Duration::from_secs(10), may_lose: false, migrate: true, prefix: None }
    }

    /// Sets the maximum number of open connections, at least 1. Reads use them, and in PostgreSQL up to three
    /// transactions with the writes that wait, and one for each write that waits for a lock of another process. A store
    /// that waits for due documents ([`Store::changed`](tool_runtime::store::Store::changed)) uses one to listen.
    #[must_use]
    pub const fn connections(mut self, connections: u32) -> Self {
        self.connections = if connections == 0 { 1 } else { connections };
        self
    }

    /// Sets how long to wait for a connection and for a lock, and how long to retry while the database restarts, before
    /// an error is returned. At least a millisecond, at most a day. PostgreSQL ends a statement of a write that takes
    /// twice as long.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.clamp(Duration::from_millis(1), Duration::from_hours(24));
        self
    }

    /// Sets the prefix of the tables, so that several applications can share a database: at most 32 of `a` to `z`, `0`
    /// to `9` and `_`, not starting with a digit. Another prefix is another store. The default is `tool_runtime_`.
    #[must_use]
    pub fn table_prefix(mut self, prefix: impl Into<Arc<str>>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets whether opening creates the tables of a new database and migrates those of an older version. The default is
    /// `true`. With `false`, such a database is refused
    /// ([`StoreError::Older`](tool_runtime::store::StoreError::Older)), so that the tables can belong to another user
    /// than the application's.
    #[must_use]
    pub const fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Sets whether to open a server whose settings allow a crash to lose committed data: `fsync` or `full_page_writes`
    /// is off. By default it is refused ([`StoreError::MayLose`](tool_runtime::store::StoreError::MayLose)). Accept it
    /// if the data has no value, or if the storage below gives the guarantee, such as a file system without torn pages
    /// for `full_page_writes`.
    #[must_use]
    pub const fn may_lose_commits(mut self, may_lose: bool) -> Self {
        self.may_lose = may_lose;
        self
    }

    pub(super) fn prefix(&self) -> Prefix {
        self.prefix.as_deref().map_or_else(Prefix::default, Prefix::new)
    }

    pub(super) fn pool<DB: sqlx::Database>(&self) -> PoolOptions<DB> {
        // A broken connection shows when it is used, which saves a round trip for each use.
        PoolOptions::new().max_connections(self.connections).acquire_timeout(self.patience).test_before_acquire(false)
    }
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self::new()
    }
}
