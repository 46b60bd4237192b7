//! [`SqlOptions`]: the options of a store.

use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolOptions;

use crate::store::prefix::Prefix;

/// The options with which a store uses its database.
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
    /// Returns the defaults: 16 connections, a patience of 10 seconds, and tables with the prefix `tool_runtime_` that
    /// the store creates and migrates. A server that may lose committed data is refused.
    #[must_use]
    pub const fn new() -> Self {
        Self { connections: 16, patience: Duration::from_secs(10), may_lose: false, migrate: true, prefix: None }
    }

    /// Sets the maximum number of open connections, at least 1. Reads can use all of them. In SQLite, writes use one.
    /// In PostgreSQL, writes use up to three, plus one for each write that needs its own transaction, for example
    /// because another process holds its lock. A store that waits for due documents
    /// ([`Store::changed`](tool_runtime::store::Store::changed)) uses one more to listen for notifications.
    #[must_use]
    pub const fn connections(mut self, connections: u32) -> Self {
        self.connections = if connections == 0 { 1 } else { connections };
        self
    }

    /// Sets the time to wait for a connection and for a lock, and to retry while the database restarts, before a method
    /// returns an error. It is at least a millisecond and at most a day. PostgreSQL ends a statement of a write that
    /// takes twice this time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.clamp(Duration::from_millis(1), Duration::from_hours(24));
        self
    }

    /// Sets the prefix of the tables, so that several applications can have separate stores in one database. It has 1
    /// to 32 characters of `a` to `z`, `0` to `9` and `_`, and begins with neither a digit nor `sqlite_`. A store with
    /// another prefix cannot be opened. The default is `tool_runtime_`.
    #[must_use]
    pub fn table_prefix(mut self, prefix: impl Into<Arc<str>>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets whether opening creates the tables of a new database and migrates tables of an older version. The default
    /// is `true`. With `false`, such a database is refused
    /// ([`StoreError::Older`](tool_runtime::store::StoreError::Older)). Use `false` if the application's database user
    /// may not change tables.
    #[must_use]
    pub const fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Sets whether to accept a server with `fsync` or `full_page_writes` off, which a crash can make lose commits.
    /// By default such a server is refused ([`StoreError::MayLose`](tool_runtime::store::StoreError::MayLose)). Accept
    /// it if the data has no value, or if the storage gives the guarantee itself, such as a file system without torn
    /// pages for `full_page_writes`.
    #[must_use]
    pub const fn may_lose_commits(mut self, may_lose: bool) -> Self {
        self.may_lose = may_lose;
        self
    }

    pub(super) fn prefix(&self) -> Prefix {
        self.prefix.as_deref().map_or_else(Prefix::default, Prefix::new)
    }

    pub(super) fn pool<DB: sqlx::Database>(&self) -> PoolOptions<DB> {
        // A broken connection fails at its next use. Testing it before would cost a round trip for each use.
        PoolOptions::new().max_connections(self.connections).acquire_timeout(self.patience).test_before_acquire(false)
    }
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self::new()
    }
}
