//! Opens a database.

#[cfg(feature = "sqlite")]
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "sqlite")]
use std::time::Duration;

use sqlx::ConnectOptions;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tool_runtime::store::StoreError;

use crate::store::SqlStore;
use crate::store::connection::{Connections, Database};
use crate::store::failure::failed;
use crate::store::migrate::migrate;
use crate::store::options::SqlOptions;
use crate::store::problem::misconfigured;
#[cfg(feature = "postgres")]
use crate::store::shared::CHANNEL;
use crate::store::shared::Shared;
use crate::store::write::PAUSE;

impl SqlStore {
    /// Opens a database file of SQLite. A missing file is created; on Unix, only its owner may read and write it. The
    /// file must be on a local disk. Several processes of one machine may share it.
    ///
    /// The file is opened in WAL mode with `synchronous=FULL` and, on macOS, `fullfsync`, so that a commit survives a
    /// power cut. An existing file that other users may open keeps its mode, and a warning is logged.
    ///
    /// # Errors
    /// The path is empty or `:memory:`, or the prefix of the tables is not allowed; the file cannot be opened, is not a
    /// database or cannot use WAL mode; or the database belongs to a newer version of this library, needs a migration
    /// that [`SqlOptions::migrate`] forbids, or has other tables of the same names.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(path: impl AsRef<Path>, options: SqlOptions) -> Result<Self, StoreError> {
        use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

        let (path, prefix) = (own_file(path.as_ref())?, options.prefix());
        prefix.check()?;
        let connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .synchronous(SqliteSynchronous::Full)
            // Overwrite the frozen arguments of decided calls instead of leaving them in free pages.
            .pragma("secure_delete", "ON")
            .pragma("fullfsync", "ON")
            .pragma("checkpoint_fullfsync", "ON")
            .busy_timeout(options.patience)
            .disable_statement_logging();
        let connections = Connections::Sqlite(options.pool().connect_with(connect).await.map_err(failed)?);
        let database = Database { connections, prefix };
        write_ahead(&database, options.patience).await?;
        Self::open(database, &options).await
    }

    /// Connects to a database of PostgreSQL 13 or newer by its URL. The tables are created in the first schema of the
    /// `search_path`. While the server cannot be reached, for example because it is starting, the connection is retried
    /// for up to [`SqlOptions::patience`].
    ///
    /// # Errors
    /// The URL is malformed, or the prefix of the tables is not allowed; the server cannot be reached or refuses the
    /// connection; the database belongs to a newer version of this library, needs a migration that
    /// [`SqlOptions::migrate`] forbids, has other tables of the same names, or has another encoding than UTF-8; or the
    /// server's settings allow a crash to lose committed data ([`SqlOptions::may_lose_commits`]).
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    #[cfg(feature = "postgres")]
    pub async fn postgres(url: &str, options: SqlOptions) -> Result<Self, StoreError> {
        let prefix = options.prefix();
        prefix.check()?;
        let connect: sqlx::postgres::PgConnectOptions =
            url.parse().map_err(|error| crate::store::problem::address(&error))?;
        let connect = connect.disable_statement_logging();
        reached(&connect, &options).await?;
        let connections = Connections::Postgres(options.pool().connect_lazy_with(connect));
        let database = Database { connections, prefix };
        keeps_text_and_commits(&database, options.may_lose).await?;
        Self::open(database, &options).await
    }

    /// Uses the connections of an application's own pool. The pool's size replaces [`SqlOptions::connections`], and its
    /// acquire timeout replaces [`SqlOptions::patience`] for the wait for a connection. The store shares no transaction
    /// with the application.
    ///
    /// ```no_run
    /// use tool_runtime_sql::{SqlOptions, SqlStore};
    ///
    /// # async fn open(pool: sqlx::PgPool) -> Result<(), tool_runtime::store::StoreError> {
    /// let store = SqlStore::postgres_pool(pool.clone(), SqlOptions::new()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same as those of [`postgres`](Self::postgres), except those of the URL.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    #[cfg(feature = "postgres")]
    pub async fn postgres_pool(pool: sqlx::PgPool, options: SqlOptions) -> Result<Self, StoreError> {
        let prefix = options.prefix();
        prefix.check()?;
        let database = Database { connections: Connections::Postgres(pool), prefix };
        keeps_text_and_commits(&database, options.may_lose).await?;
        Self::open(database, &options).await
    }

    async fn open(database: Database, options: &SqlOptions) -> Result<Self, StoreError> {
        migrate(&database, options.migrate).await?;
        Ok(Self(Arc::new(Shared {
            database,
            handle: Handle::current(),
            queue: <_>::default(),
            clock: <_>::default(),
            changed: <_>::default(),
            notices: <_>::default(),
            #[cfg(feature = "postgres")]
            listener: <_>::default(),
            patience: options.patience,
            #[cfg(all(test, feature = "sqlite"))]
            faults: super::tests::Faults::default(),
        })))
    }
}

/// Creates the file, readable only by its owner, unless it exists. SQLite gives its other files the same mode. Returns
/// the absolute path, because SQLite does not read every relative name as a file.
#[cfg(feature = "sqlite")]
fn own_file(path: &Path) -> Result<std::path::PathBuf, StoreError> {
    use crate::store::private_file;

    let shown = path.display();
    if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" {
        let problem = "a store of SQLite needs a file: write its path, or use a `MemoryStore`".to_owned();
        return Err(misconfigured(problem));
    }
    let made = if path.exists() { Ok(()) } else { private_file::make(path) };
    made.map_err(|error| {
        let problem = match path.parent().filter(|folder| !folder.exists()) {
            Some(folder) if !folder.as_os_str().is_empty() => {
                format!("the folder {} of the store does not exist: create it, or choose another", folder.display())
            }
            _ => format!("the file {shown} of the store cannot be created: check the permissions of its folder"),
        };
        StoreError::Unreachable { problem, source: Box::new(error) }
    })?;
    if let Some(mode) = private_file::shared_mode(path) {
        tracing::warn!("other users may open {shown} (mode {mode:04o}): chmod 600 keeps it to its owner");
    }
    std::path::absolute(path).map_err(|error| StoreError::Unavailable(Box::new(error)))
}

/// Makes one connection, to find errors in the URL. Retries while the server cannot be reached, for example because it
/// is starting.
#[cfg(feature = "postgres")]
async fn reached(connect: &sqlx::postgres::PgConnectOptions, options: &SqlOptions) -> Result<(), StoreError> {
    use crate::store::failure::is_transient;

    let address = crate::store::problem::Address::of(connect);
    let (end, mut last) = (Instant::now() + options.patience, None);
    loop {
        let error = match tokio::time::timeout_at(end, connect.connect()).await {
            Ok(Ok(connection)) => {
                // The connection made no changes, so a failed close loses nothing.
                drop(sqlx::Connection::close(connection).await);
                return Ok(());
            }
            Ok(Err(error)) => error,
            // The error of an earlier attempt has the reason.
            Err(_) => last.unwrap_or(sqlx::Error::PoolTimedOut),
        };
        if !is_transient(&error) || address.lacks_file(&error) || Instant::now() >= end {
            return Err(address.refused(error));
        }
        last = Some(error);
        sleep(PAUSE).await;
    }
}

/// Refuses a database that cannot store every character, and a server that can lose committed data.
/// `synchronous_commit` is not checked here, because each transaction sets it.
#[cfg(feature = "postgres")]
async fn keeps_text_and_commits(database: &Database, may_lose: bool) -> Result<(), StoreError> {
    let sql = "SELECT name, setting FROM pg_settings WHERE name = 'server_encoding' AND setting <> 'UTF8' OR name IN \
               ('fsync', 'full_page_writes') AND setting <> 'on' ORDER BY name";
    for (setting, value) in
        database.connection().await.map_err(failed)?.rows::<(String, String)>(sql, []).await.map_err(failed)?
    {
        if setting == "server_encoding" {
            return Err(misconfigured(format!(
                "the database has the encoding {value}, and a store needs UTF8: make another with CREATE DATABASE .. \
                 ENCODING 'UTF8' TEMPLATE template0"
            )));
        }
        if !may_lose {
            return Err(StoreError::MayLose { setting });
        }
    }
    Ok(())
}

/// Switches a file to WAL mode. Retries, because SQLite fails at once while another process does the same.
#[cfg(feature = "sqlite")]
async fn write_ahead(database: &Database, patience: Duration) -> Result<(), StoreError> {
    let end = Instant::now() + patience;
    loop {
        let mut connection = database.connection().await.map_err(failed)?;
        let error = match connection.last::<(String,)>("PRAGMA journal_mode = WAL").await {
            Ok((mode,)) if mode == "wal" => return Ok(()),
            Ok(_) => sqlx::Error::Configuration("this file supports no write-ahead log: put it on a local disk".into()),
            Err(error) => error,
        };
        connection.discard();
        match failed(error) {
            StoreError::Locked(_) if Instant::now() < end => sleep(PAUSE).await,
            error => return Err(error),
        }
    }
}

/// Starts to listen for changes by other processes, once.
#[cfg(feature = "postgres")]
pub(super) fn listen(shared: &Arc<Shared>) {
    #[cfg_attr(not(feature = "sqlite"), expect(irrefutable_let_patterns, reason = "there is another database"))]
    let Connections::Postgres(pool) = &shared.database.connections else { return };
    let mut listener = shared.listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if listener.is_none() {
        *listener =
            Some(shared.handle.spawn(hear(pool.clone(), shared.database.prefix.name(CHANNEL), Arc::downgrade(shared))));
    }
}

/// Wakes the waiting tasks at each notification, and whenever a notification may have been lost.
#[cfg(feature = "postgres")]
async fn hear(pool: sqlx::Pool<sqlx::Postgres>, channel: String, shared: std::sync::Weak<Shared>) {
    loop {
        if let Ok(mut listener) = sqlx::postgres::PgListener::connect_with(&pool).await
            && listener.listen(&channel).await.is_ok()
        {
            while let Ok(Some(_)) = listener.try_recv().await {
                let Some(shared) = shared.upgrade() else { return };
                shared.wake();
            }
        }
        let Some(shared) = shared.upgrade() else { return };
        shared.wake();
        drop(shared);
        sleep(PAUSE).await;
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
