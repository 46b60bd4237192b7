//! Opening a database.

use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::pool::PoolOptions;
use tokio::runtime::Handle;

use crate::store::StoreError;
use crate::store::sql::connection::Database;
use crate::store::sql::migrate::migrate;
use crate::store::sql::{Shared, SqlStore};

/// How a store uses its database.
///
/// ```
/// use std::time::Duration;
/// use tool_runtime::store::SqlOptions;
///
/// let options = SqlOptions::new().connections(4).patience(Duration::from_secs(2));
/// # drop(options);
/// ```
#[derive(Debug, Clone)]
pub struct SqlOptions {
    connections: u32,
    patience: Duration,
    may_lose: bool,
}

impl SqlOptions {
    /// 16 connections, 10 seconds, and no database that may lose what was committed.
    #[must_use]
    pub const fn new() -> Self {
        Self { connections: 16, patience: Duration::from_secs(10), may_lose: false }
    }

    /// How many connections are open at most; at least 1. PostgreSQL writes to as many runs at the same time.
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

    /// Whether a server may be opened whose settings let a crash lose what was committed: `fsync` or `full_page_writes`
    /// is off. By default it is refused ([`StoreError::MayLose`]). Accept it where nothing of value is stored, or where
    /// what is below the database keeps its promise, as a file system that never writes half a page does for
    /// `full_page_writes`.
    #[must_use]
    pub const fn may_lose_commits(mut self, may_lose: bool) -> Self {
        self.may_lose = may_lose;
        self
    }

    fn pool<DB: sqlx::Database>(&self) -> PoolOptions<DB> {
        // A connection that broke is found when it is used, so that no use costs a question more.
        PoolOptions::new().max_connections(self.connections).acquire_timeout(self.patience).test_before_acquire(false)
    }
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl SqlStore {
    /// Opens a database file of SQLite, and makes it if there is none. It belongs on a local disk: several processes of
    /// one machine may share it.
    ///
    /// It is opened in WAL mode with `synchronous=FULL` and, for macOS, `fullfsync`, so that a commit survives a power cut.
    ///
    /// # Errors
    /// The file cannot be opened or is not a database; it was made by a newer version of this library.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(path: impl AsRef<std::path::Path>, options: SqlOptions) -> Result<Self, StoreError> {
        use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

        let connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            // Frozen arguments of calls that were decided are overwritten, not left in free pages.
            .pragma("secure_delete", "ON")
            .pragma("fullfsync", "ON")
            .pragma("checkpoint_fullfsync", "ON")
            .busy_timeout(options.patience)
            .disable_statement_logging();
        let database = Database::Sqlite(options.pool().connect_with(connect).await?);
        write_ahead(&database, options.patience).await?;
        Self::open(database, &options).await
    }

    /// Connects to a database of PostgreSQL, 13 or newer, by its URL. The tables are made in the first schema of its
    /// `search_path`.
    ///
    /// # Errors
    /// The server cannot be reached; the database belongs to a newer version of this library; the server's settings let
    /// a crash lose what was committed ([`SqlOptions::may_lose_commits`]).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[cfg(feature = "postgres")]
    pub async fn postgres(url: &str, options: SqlOptions) -> Result<Self, StoreError> {
        let connect: sqlx::postgres::PgConnectOptions = url.parse().map_err(StoreError::from)?;
        let connect = connect.disable_statement_logging();
        let database = Database::Postgres(options.pool().connect_with(connect).await?);
        if !options.may_lose {
            keeps_commits(&database).await?;
        }
        Self::open(database, &options).await
    }

    async fn open(database: Database, options: &SqlOptions) -> Result<Self, StoreError> {
        migrate(&database).await?;
        Ok(Self(Arc::new(Shared {
            database,
            handle: Handle::current(),
            queue: <_>::default(),
            clock: <_>::default(),
            changed: <_>::default(),
            #[cfg(feature = "postgres")]
            listener: <_>::default(),
            patience: options.patience,
            #[cfg(all(test, feature = "sqlite"))]
            faults: super::tests::Faults::default(),
        })))
    }
}

/// Refuses a server that can lose what it committed. `synchronous_commit` is set by each transaction.
#[cfg(feature = "postgres")]
async fn keeps_commits(database: &Database) -> Result<(), StoreError> {
    let sql =
        "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting <> 'on' ORDER BY name";
    let off = database.connection().await?.rows::<(String,)>(sql, []).await?;
    off.into_iter().next().map_or(Ok(()), |(setting,)| Err(StoreError::MayLose { setting }))
}

/// Switches a file to WAL mode. While another process does the same, SQLite refuses without waiting.
#[cfg(feature = "sqlite")]
async fn write_ahead(database: &Database, patience: Duration) -> Result<(), StoreError> {
    let end = tokio::time::Instant::now() + patience;
    loop {
        let mut connection = database.connection().await?;
        let error = match connection.last::<(String,)>("PRAGMA journal_mode = WAL").await {
            Ok((mode,)) if mode == "wal" => return Ok(()),
            Ok(_) => sqlx::Error::Configuration("this file cannot be written ahead: it needs a local disk".into()),
            Err(error) => error,
        };
        connection.discard();
        match StoreError::from(error) {
            StoreError::Locked(_) if tokio::time::Instant::now() < end => {
                tokio::time::sleep(crate::store::sql::write::PAUSE).await;
            }
            error => return Err(error),
        }
    }
}

/// Starts to listen for what other processes change, once.
#[cfg(feature = "postgres")]
pub(super) fn listen(shared: &Arc<Shared>) {
    #[cfg_attr(not(feature = "sqlite"), expect(irrefutable_let_patterns, reason = "there is another database"))]
    let Database::Postgres(pool) = &shared.database else { return };
    let mut listener = shared.listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if listener.is_none() {
        *listener = Some(shared.handle.spawn(hear(pool.clone(), Arc::downgrade(shared))));
    }
}

/// Wakes those who wait, at each notification and whenever one may have been lost.
#[cfg(feature = "postgres")]
async fn hear(pool: sqlx::Pool<sqlx::Postgres>, shared: std::sync::Weak<Shared>) {
    loop {
        if let Ok(mut listener) = sqlx::postgres::PgListener::connect_with(&pool).await
            && listener.listen(crate::store::sql::CHANNEL).await.is_ok()
        {
            while let Ok(Some(_)) = listener.try_recv().await {
                let Some(shared) = shared.upgrade() else { return };
                shared.changed.wake();
            }
        }
        let Some(shared) = shared.upgrade() else { return };
        shared.changed.wake();
        drop(shared);
        tokio::time::sleep(crate::store::sql::write::PAUSE).await;
    }
}

#[cfg(feature = "postgres")]
impl Drop for Shared {
    fn drop(&mut self) {
        let listener = self.listener.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(listener) = listener.take() {
            listener.abort();
        }
    }
}
