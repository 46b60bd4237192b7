//! [`Database`] and [`Connection`]: one interface to SQLite and PostgreSQL, and to tables with any prefix.

use std::future::poll_fn;

use sqlx::pool::PoolConnection;
use sqlx::{FromRow, Pool, raw_sql};

use crate::store::prefix::Prefix;

#[cfg(feature = "postgres")]
use sqlx::postgres::{PgRow, Postgres};
#[cfg(feature = "sqlite")]
use sqlx::sqlite::{Sqlite, SqliteRow};

/// A pool of connections.
#[derive(Clone)]
pub(super) enum Connections {
    #[cfg(feature = "sqlite")]
    Sqlite(Pool<Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(Pool<Postgres>),
}

/// The connections of a store, and the prefix of its tables.
#[derive(Clone)]
pub(super) struct Database {
    pub(super) connections: Connections,
    pub(super) prefix: Prefix,
}

impl Database {
    pub(super) async fn connection(&self) -> Result<Connection, sqlx::Error> {
        let of = match &self.connections {
            #[cfg(feature = "sqlite")]
            Connections::Sqlite(pool) => Of::Sqlite(pool.acquire().await?),
            #[cfg(feature = "postgres")]
            Connections::Postgres(pool) => Of::Postgres(pool.acquire().await?),
        };
        Ok(Connection { of, prefix: self.prefix.clone() })
    }

    /// Returns the maximum number of workers, each with one transaction. The number is small, because few transactions
    /// of many writes cost the server less than many transactions of one. Writes that need a transaction of their own,
    /// for example because another process holds their lock, run outside the workers and are not included.
    pub(super) fn writers(&self) -> usize {
        match &self.connections {
            #[cfg(feature = "sqlite")]
            Connections::Sqlite(_) => 1,
            #[cfg(feature = "postgres")]
            Connections::Postgres(pool) => (pool.options().get_max_connections() as usize).min(3),
        }
    }

    /// Whether a connection is available now.
    #[cfg(feature = "postgres")]
    pub(super) fn has_spare(&self) -> bool {
        match &self.connections {
            #[cfg(feature = "sqlite")]
            Connections::Sqlite(_) => false,
            Connections::Postgres(pool) => pool.num_idle() > 0 || pool.size() < pool.options().get_max_connections(),
        }
    }

    /// Returns how many writes may share a transaction.
    pub(super) const fn batch(&self) -> usize {
        match &self.connections {
            #[cfg(feature = "sqlite")]
            Connections::Sqlite(_) => 64,
            #[cfg(feature = "postgres")]
            Connections::Postgres(_) => 32,
        }
    }

    pub(super) const fn is_sqlite(&self) -> bool {
        match &self.connections {
            #[cfg(feature = "sqlite")]
            Connections::Sqlite(_) => true,
            #[cfg(feature = "postgres")]
            Connections::Postgres(_) => false,
        }
    }
}

/// A connection. After a failure inside a transaction, call [`discard`](Self::discard), so that the pool never contains
/// a connection with an open transaction.
pub(super) struct Connection {
    of: Of,
    prefix: Prefix,
}

enum Of {
    #[cfg(feature = "sqlite")]
    Sqlite(PoolConnection<Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(PoolConnection<Postgres>),
}

/// An argument of a statement.
#[derive(Clone)]
pub(super) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(Some(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

/// An argument that holds all values of a column. With such arguments, the text of a statement of PostgreSQL does not
/// depend on the number of rows.
#[cfg(feature = "postgres")]
pub(super) enum Array {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
}

#[cfg(feature = "postgres")]
impl Array {
    /// Creates an empty array of numbers or of texts.
    pub(super) const fn new(is_number: bool) -> Self {
        if is_number { Self::Ints(Vec::new()) } else { Self::Texts(Vec::new()) }
    }

    /// Creates an array of texts.
    pub(super) fn texts(texts: impl IntoIterator<Item = String>) -> Self {
        Self::Texts(texts.into_iter().map(Some).collect())
    }

    /// Adds a value. A value of the wrong type is added as null.
    pub(super) fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Ints(all), Value::Int(value)) => all.push(value),
            (Self::Texts(all), Value::Text(value)) => all.push(value),
            (Self::Ints(all), Value::Text(_)) => all.push(None),
            (Self::Texts(all), Value::Int(_)) => all.push(None),
        }
    }
}

/// A type into which a row of either database can be read.
pub(super) trait Row: Send + Unpin + OfSqlite + OfPostgres {}

impl<T: Send + Unpin + OfSqlite + OfPostgres> Row for T {}

macro_rules! row_of {
    ($name:ident, $feature:literal, $row:ident) => {
        #[cfg(feature = $feature)]
        pub(super) trait $name: for<'r> FromRow<'r, $row> {}
        #[cfg(feature = $feature)]
        impl<T: for<'r> FromRow<'r, $row>> $name for T {}
        #[cfg(not(feature = $feature))]
        pub(super) trait $name {}
        #[cfg(not(feature = $feature))]
        impl<T> $name for T {}
    };
}

row_of!(OfSqlite, "sqlite", SqliteRow);
row_of!(OfPostgres, "postgres", PgRow);

/// Runs the same expression on either connection.
macro_rules! on {
    ($connection:expr, $of:ident => $work:expr) => {
        match $connection {
            #[cfg(feature = "sqlite")]
            Of::Sqlite($of) => $work,
            #[cfg(feature = "postgres")]
            Of::Postgres($of) => $work,
        }
    };
}

impl Connection {
    #[cfg(feature = "postgres")]
    pub(super) const fn is_sqlite(&self) -> bool {
        match &self.of {
            #[cfg(feature = "sqlite")]
            Of::Sqlite(_) => true,
            Of::Postgres(_) => false,
        }
    }

    /// Runs statements without arguments. The text must come from this library.
    pub(super) async fn run(&mut self, sql: impl Into<String>) -> Result<(), sqlx::Error> {
        let sql = self.prefix.named(sql.into());
        on!(&mut self.of, of => raw_sql(sql).execute(&mut **of).await.map(drop))
    }

    /// Runs statements without arguments and returns the last row. The text must come from this library.
    pub(super) async fn last<T: Row>(&mut self, sql: impl Into<String>) -> Result<T, sqlx::Error> {
        let sql = self.prefix.named(sql.into());
        on!(&mut self.of, of => match raw_sql(sql).fetch_all(&mut **of).await?.last() {
            Some(row) => T::from_row(row),
            None => Err(sqlx::Error::RowNotFound),
        })
    }

    /// Runs a statement and returns its rows. The text must come from this library; foreign values are arguments.
    pub(super) async fn rows<T: Row>(
        &mut self,
        sql: impl Into<String>,
        arguments: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<T>, sqlx::Error> {
        self.page(sql, arguments, (usize::MAX, |_: &T| 0)).await.map(|(rows, _)| rows)
    }

    /// Runs a statement of PostgreSQL with arrays as arguments, and returns its rows.
    #[cfg(feature = "postgres")]
    pub(super) async fn arrays<T: Row>(
        &mut self,
        sql: impl Into<String>,
        arrays: impl IntoIterator<Item = Array>,
    ) -> Result<Vec<T>, sqlx::Error> {
        let sql = self.prefix.named(sql.into());
        match &mut self.of {
            #[cfg(feature = "sqlite")]
            Of::Sqlite(_) => Err(sqlx::Error::Configuration("SQLite has no arrays".into())),
            Of::Postgres(of) => {
                let query = arrays.into_iter().fold(sqlx::query_as(sql), |query, array| match array {
                    Array::Ints(values) => query.bind(values),
                    Array::Texts(values) => query.bind(values),
                });
                query.fetch_all(&mut **of).await
            }
        }
    }

    /// Runs a statement and returns its first rows, up to and including the row with which their bytes together exceed
    /// `most`. Also returns whether rows may be left; the caller must then discard the connection.
    pub(super) async fn page<T: Row>(
        &mut self,
        sql: impl Into<String>,
        arguments: impl IntoIterator<Item = Value>,
        (most, bytes): (usize, impl Fn(&T) -> usize),
    ) -> Result<(Vec<T>, bool), sqlx::Error> {
        let sql = self.prefix.named(sql.into());
        on!(&mut self.of, of => {
            let query = arguments.into_iter().fold(sqlx::query_as(sql), |query, value| match value {
                Value::Int(value) => query.bind(value),
                Value::Text(value) => query.bind(value),
            });
            let (mut stream, mut rows, mut size) = (query.fetch(&mut **of), Vec::new(), 0_usize);
            while size <= most {
                let Some(row) = poll_fn(|context| stream.as_mut().poll_next(context)).await else {
                    return Ok((rows, false));
                };
                let row = row?;
                size = size.saturating_add(bytes(&row));
                rows.push(row);
            }
            Ok((rows, true))
        })
    }

    /// Runs a statement.
    pub(super) async fn execute(
        &mut self,
        sql: impl Into<String>,
        arguments: impl IntoIterator<Item = Value>,
    ) -> Result<(), sqlx::Error> {
        let sql = self.prefix.named(sql.into());
        on!(&mut self.of, of => {
            let query = arguments.into_iter().fold(sqlx::query(sql), |query, value| match value {
                Value::Int(value) => query.bind(value),
                Value::Text(value) => query.bind(value),
            });
            query.execute(&mut **of).await.map(drop)
        })
    }

    /// Closes the connection, which rolls back uncommitted changes.
    pub(super) fn discard(self) {
        // A detached connection does not return to the pool; dropping it closes it.
        on!(self.of, of => drop(of.detach()));
    }
}
