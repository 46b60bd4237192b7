//! [`SqlStore`]: documents and records in SQLite or PostgreSQL.

mod apply;
mod connection;
mod failure;
#[cfg(feature = "postgres")]
mod group;
mod migrate;
mod notices;
mod open;
mod options;
mod parts;
mod prefix;
#[cfg(feature = "sqlite")]
mod private_file;
mod problem;
mod queue;
mod read;
mod rows;
mod seen;
mod shared;
mod statement;
#[cfg(test)]
mod tests;
mod text;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tool_runtime::store::{
    AuditRecord, ChangeFn, DueRun, Key, Query, QueueDepth, RecordFilter, SealedRecord, Store, StoreError,
    StoredDocument, WriteHandle,
};

use self::apply::Work;
use self::shared::Shared;

pub use options::SqlOptions;

/// A store in a database: SQLite (feature `sqlite`) for processes on one machine, PostgreSQL (feature `postgres`) for
/// processes on several machines. Clones share the connections.
///
/// A write whose handle resolved to `Ok` survives a crash of the process, of the machine and of the database, if the
/// settings of the database keep committed data. The guide's page on stores lists these settings.
///
/// Writes run in the runtime in which the store was opened, even if they are started outside it, for example from
/// `Drop`. At most 4,096 writes wait or run at the same time; a further write fails with [`StoreError::Busy`].
/// [`SqlOptions::patience`] limits each wait for the database.
///
/// ```no_run
/// use tool_runtime_sql::{SqlOptions, SqlStore};
///
/// # async fn open() -> Result<(), tool_runtime::store::StoreError> {
/// # #[cfg(feature = "sqlite")]
/// let store = SqlStore::sqlite("data/store.db", SqlOptions::new()).await?;
/// # #[cfg(feature = "postgres")]
/// let store = SqlStore::postgres("postgres://app@db.example/app?sslmode=verify-full", SqlOptions::new()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SqlStore(Arc<Shared>);

/// The poll interval of [`Store::changed`]. Polling is needed even without changes, because documents become due as
/// time passes.
const POLL: Duration = Duration::from_secs(1);

impl SqlStore {
    /// The version of the tables that this library reads and writes.
    pub const VERSION: i64 = migrate::VERSION;

    fn write(&self, work: Work) -> WriteHandle {
        let (sender, receiver) = oneshot::channel();
        match self.0.queue.push(work, sender) {
            Ok(()) => {
                write::hire(&self.0);
                WriteHandle::new(receiver)
            }
            Err(_) => WriteHandle::ready(Err(StoreError::Busy)),
        }
    }
}

#[async_trait]
impl Store for SqlStore {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        self.write(Work::Append(Box::new(record)))
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        self.write(Work::Update(keys, change))
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        read::documents(&self.0, keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        read::list(&self.0, query).await
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        read::records(&self.0, filter).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.0.queue.drained().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        read::now(&self.0).await
    }

    async fn changed(&self) {
        #[cfg(feature = "postgres")]
        open::listen(&self.0);
        drop(tokio::time::timeout(POLL, self.0.changed.notified()).await);
    }

    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        read::due_runs(&self.0, now, lane, limit).await
    }

    async fn lanes(&self, _: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        read::lanes(&self.0, after, limit).await
    }

    async fn depth(&self, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
        read::depth(&self.0, now, tenant).await
    }
}

impl fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address of a database can contain a password.
        f.debug_struct("SqlStore").field("is_sqlite", &self.0.database.is_sqlite()).finish_non_exhaustive()
    }
}
