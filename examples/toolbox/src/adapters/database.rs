//! Opens, migrates and seeds the SQLite file. Several processes may use it at the same time.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use office_tools::Failure;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::adapters::{blocking, seed, unavailable};

/// The time to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(3);

/// The migrations, each from one version to the next.
const MIGRATIONS: [&str; 2] = [include_str!("schema.sql"), include_str!("connections.sql")];

/// One connection to the file, shared by all adapters.
pub(crate) struct Database(Arc<Mutex<Connection>>);

/// The reason why the file cannot be used, with a message on what to do.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// An error of SQLite.
    Sqlite(rusqlite::Error),
    /// A newer program has changed the tables.
    Newer,
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Sqlite(error) = self else {
            return f.write_str("toolbox.db belongs to a newer version; use that one or choose another --data folder");
        };
        let advice = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another program is writing to toolbox.db; wait for it or close it"
            }
            Some(ErrorCode::ReadOnly) => "toolbox.db is read-only; make it writable or choose another --data folder",
            Some(ErrorCode::CannotOpen) => "toolbox.db cannot be opened; check the permissions of the folder",
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                "toolbox.db is not an SQLite database, or it is damaged; restore it or move it away"
            }
            Some(ErrorCode::DiskFull) => "the disk is full",
            _ => return write!(f, "toolbox.db: {error}"),
        };
        f.write_str(advice)
    }
}

impl std::error::Error for DatabaseError {}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Database {
    /// Opens the file. A new file gets its tables and seed data.
    pub(crate) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let version: usize = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version < MIGRATIONS.len() {
            connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            migrate(&mut connection)?;
        } else if version > MIGRATIONS.len() {
            return Err(DatabaseError::Newer);
        }
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Runs a query on a blocking thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let database = Self(Arc::clone(&self.0));
        blocking(move || database.run_here(work)).await
    }

    /// Runs a query on this thread.
    pub(crate) fn run_here<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, Failure> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut connection).map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Failure::NotFound,
            error => unavailable(DatabaseError::from(error)),
        })
    }

    /// Opens the file read-only; `None` if it does not exist.
    fn look(path: &Path) -> Result<Option<Connection>, DatabaseError> {
        if !path.exists() {
            return Ok(None);
        }
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(BUSY)?;
        Ok(Some(connection))
    }

    /// Lists the rows that tools can change, one line per row. Does not change the file.
    pub(crate) fn describe(path: &Path) -> Result<Vec<String>, DatabaseError> {
        let Some(connection) = Self::look(path)? else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        let queries = [
            "SELECT printf('task %s  %s  state=%s  due=%s', task_id, title, state, coalesce(due_date, '-')) FROM tasks",
            "SELECT printf('note %d  %d characters', note_id, length(text)) FROM notes",
        ];
        for query in queries {
            let mut statement = connection.prepare(query)?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            lines.extend(rows.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(lines)
    }
}

/// Migrates the file to the newest version in one transaction. Of several processes, only one does it.
fn migrate(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for migration in MIGRATIONS.iter().skip(version) {
        transaction.execute_batch(migration)?;
    }
    if version == 0 {
        seed::fill(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_seeded_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolbox.db");
        assert!(Database::describe(&path).unwrap().is_empty());
        assert!(!path.exists());
        Database::open(&path).unwrap();
        let first = Database::describe(&path).unwrap();
        assert!(first.iter().any(|line| line.contains("0c5e9f3a-1b2d-4e6f-8a7b-9c0d1e2f3a4b")));
        Database::open(&path).unwrap();
        assert_eq!(Database::describe(&path).unwrap(), first);
    }

    #[test]
    fn processes_that_start_at_once_seed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolbox.db");
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| Database::open(&path).map(|_| ()))).collect();
            all.into_iter().for_each(|one| one.join().unwrap().unwrap());
        });
        let tasks = Database::describe(&path).unwrap().iter().filter(|line| line.starts_with("task")).count();
        assert_eq!(tasks, 5);
    }

    #[tokio::test]
    async fn a_locked_file_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolbox.db");
        let database = Database::open(&path).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let wait = |connection: &mut Connection| connection.busy_timeout(Duration::from_millis(10));
        database.run(wait).await.unwrap();
        let write = |connection: &mut Connection| connection.execute("INSERT INTO notes (text) VALUES ('x')", []);
        let Err(Failure::Unavailable(error)) = database.run(write).await else { panic!("written") };
        assert!(error.to_string().contains("another program"), "{error}");
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolbox.db");
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let error = Database::open(&path).err().unwrap();
        assert!(error.to_string().contains("newer version"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_database_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolbox.db");
        std::fs::write(&path, "this is a text file, and a long enough one to be read as a header").unwrap();
        let error = Database::open(&path).err().unwrap();
        assert!(error.to_string().contains("not an SQLite database"), "{error}");
    }

    #[test]
    fn a_folder_that_is_not_there_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let error = Database::open(&folder.path().join("none/toolbox.db")).err().unwrap();
        assert!(error.to_string().contains("cannot be opened"), "{error}");
    }
}
