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
    /// 16 connections, 10 seconds, tables that begin with `tool_runtime_` and are made and migrated, and no database that
    /// may lose committed data.
    #[must_use]
    pub const fn new() -> Self {
        Self { connections: 16, patience: Duration::from_secs(10), may_lose: false, migrate: true, prefix: None }
    }

    /// How many connections are open at most; at least 1. PostgreSQL writes to as many runs at the same time. A store that
    /// waits for what is due ([`Store::changed`](tool_runtime::store::Store::changed)) keeps one of them to listen.
    #[must_use]
    pub const fn connections(mut self, connections: u32) -> Self {
        self.connections = if connections == 0 { 1 } else { connections };
        self
    }

    /// How long to wait for a connection, for a lock and for a statement, and how long to try again while the database
    /// is restarted, before an error is returned. At least a millisecond.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.clamp(Duration::from_millis(1), Duration::from_secs(86_400));
        self
    }

    /// How the names of the tables begin, so that several applications can share a database: at most 32 of `a` to `z`,
    /// `0` to `9` and `_`, with no digit first. Another prefix is another store. `tool_runtime_` by default.
    #[must_use]
    pub fn table_prefix(mut self, prefix: impl Into<Arc<str>>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Whether opening makes the tables of a new database, and brings one of an older version to this library's. `true` by
    /// default. Otherwise such a database is refused ([`StoreError::Older`](tool_runtime::store::StoreError::Older)), so that
    /// the tables can belong to another user than the one the application has.
    #[must_use]
    pub const fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Whether a server may be opened whose settings let a crash lose committed data: `fsync` or `full_page_writes` is
    /// off. By default it is refused ([`StoreError::MayLose`](tool_runtime::store::StoreError::MayLose)). Accept it where
    /// nothing of value is stored, or where the storage below gives the guarantee, as a file system that never writes
    /// half a page does for `full_page_writes`.
    #[must_use]
    pub const fn may_lose_commits(mut self, may_lose: bool) -> Self {
        self.may_lose = may_lose;
        self
    }

    pub(super) fn prefix(&self) -> Prefix {
        self.prefix.as_deref().map_or_else(Prefix::default, Prefix::new)
    }

    pub(super) fn pool<DB: sqlx::Database>(&self) -> PoolOptions<DB> {
        // A connection that broke is found when it is used, so that no use costs a question more.
        PoolOptions::new().max_connections(self.connections).acquire_timeout(self.patience).test_before_acquire(false)
    }
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self::new()
    }
}
