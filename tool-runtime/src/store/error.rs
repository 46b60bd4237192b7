//! [`StoreError`]: the reason why an operation of a store failed.

use std::error::Error;
use std::fmt;

use crate::error::chain;

/// The reason why an operation of a store failed.
///
/// ```
/// use tool_runtime::store::StoreError;
///
/// let full = StoreError::Full;
/// assert_eq!((full.code(), full.is_failure()), ("store_full", false));
///
/// let lost = StoreError::Unavailable("connection reset".into());
/// assert!(lost.is_failure());
/// // Only operators read the cause.
/// assert!(!lost.to_string().contains("reset") && lost.detail().contains("reset"));
/// ```
#[non_exhaustive]
pub enum StoreError {
    /// A bounded store has reached its limit, a run has too many messages, or a subject has too many legal holds.
    /// Nothing was written.
    Full,
    /// Another run, suspended call or message already has this id. Nothing was written.
    Duplicate,
    /// The store was closed before it wrote the record.
    Lost,
    /// Another owner has the run or the call, or a condition of the write no longer holds. Nothing was written.
    Fenced,
    /// A legal hold covers the data. Nothing was removed.
    OnHold,
    /// The run was purged or erased, so no call begins in it. Nothing was written.
    RunPurged,
    /// A change wrote to a key or a run that it had not named. Nothing was written.
    NotLocked,
    /// The store panicked. The runner reports the panic to its failure sink.
    Panicked,
    /// The queue of writes is full, and nothing was written. Also returned by
    /// [`anchor`](trait@crate::store::Store#method.anchor) if other processes make anchors in an endless loop.
    Busy,
    /// The database, or a suspended call in it, was written by a newer version of this library.
    Newer {
        /// The version of the database.
        found: i64,
        /// The latest version that this library knows.
        known: i64,
    },
    /// The database has an older version than this library, or no tables, and `SqlOptions::migrate` does not allow a
    /// migration. Also returned if an older database was restored while it was open.
    Older {
        /// The version of the database. 0 if it has no tables.
        found: i64,
        /// The version that this library reads and writes.
        known: i64,
    },
    /// The database cannot be opened with these settings: a wrong address, missing rights, a bad certificate or missing
    /// tables. Also returned by [`Retention`](crate::store::Retention) if an id of a legal hold is empty, or the
    /// decider has no readable name.
    Misconfigured {
        /// The mistake, its place, and the correction to make. Secrets in an address are left out.
        problem: String,
        /// The cause, if there is one.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The database cannot be reached: the server does not answer, or the folder of the file is missing. The code is
    /// that of [`Unavailable`](Self::Unavailable).
    Unreachable {
        /// The missing part, its place, and where to look. Secrets in an address are left out.
        problem: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server's settings allow a crash to lose committed data.
    MayLose {
        /// The setting that is off.
        setting: String,
    },
    /// Another connection held a lock of the database for too long. Nothing was written.
    Locked(Box<dyn Error + Send + Sync>),
    /// The database cannot be written to.
    ReadOnly(Box<dyn Error + Send + Sync>),
    /// The disk of the database is full. Nothing was written.
    DiskFull(Box<dyn Error + Send + Sync>),
    /// The contents of the store cannot be read.
    Corrupt(Box<dyn Error + Send + Sync>),
    /// The database or the disk failed.
    Unavailable(Box<dyn Error + Send + Sync>),
}

impl StoreError {
    /// Returns a stable code for each kind of error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Full => "store_full",
            Self::Duplicate => "store_duplicate",
            Self::Lost => "store_lost",
            Self::Fenced => "store_fenced",
            Self::OnHold => "legal_hold",
            Self::RunPurged => "run_purged",
            Self::NotLocked => "store_not_locked",
            Self::Panicked => "store_panicked",
            Self::Busy => "store_busy",
            Self::Newer { .. } => "store_newer",
            Self::Older { .. } => "store_older",
            Self::Misconfigured { .. } => "store_misconfigured",
            Self::MayLose { .. } => "store_may_lose",
            Self::Locked(_) => "store_locked",
            Self::ReadOnly(_) => "store_read_only",
            Self::DiskFull(_) => "store_disk_full",
            Self::Corrupt(_) => "store_corrupt",
            Self::Unreachable { .. } | Self::Unavailable(_) => "store_unavailable",
        }
    }

    /// Whether the store failed. `false` if a bounded store is full, or if the change returned the error.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::Full | Self::Duplicate | Self::Fenced | Self::NotLocked | Self::OnHold | Self::RunPurged)
    }

    /// Returns the error and its causes, for operators. The causes can contain stored data.
    #[must_use]
    pub fn detail(&self) -> String {
        chain(self)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "a limit is reached: of open calls, messages to a run, or legal holds; nothing was written",
            Self::Duplicate => "another run, call or message already has this id; nothing was written",
            Self::Lost => "the store was closed before it wrote the record",
            Self::Fenced => "another process holds the run or the call; nothing was written",
            Self::OnHold => "a legal hold covers this data; nothing was removed",
            Self::RunPurged => "the run was purged or erased; begin a run with another id",
            Self::NotLocked => "a change wrote to a document or a run that it had not named; nothing was written",
            Self::Panicked => "the store failed unexpectedly",
            Self::Busy => "too many writes wait for the store; nothing was written",
            Self::Newer { found, known } => {
                return write!(
                    f,
                    "the database has version {found}, and this library knows {known} at most: use a newer library"
                );
            }
            Self::Older { found: 0, .. } => {
                "the database has no tables of this library: make them with the command `store migrate`, or open it with \
                 `SqlOptions::migrate(true)`"
            }
            Self::Older { found, known } => {
                return write!(
                    f,
                    "the database has version {found}, and this library needs {known}: migrate it with the command `store \
                     migrate`, or open it with `SqlOptions::migrate(true)`"
                );
            }
            Self::Misconfigured { problem, .. } | Self::Unreachable { problem, .. } => problem,
            Self::MayLose { setting } => {
                return write!(
                    f,
                    "the database has `{setting}` off, so that a crash can lose committed data: switch it on, or \
                     accept the loss with `SqlOptions::may_lose_commits`"
                );
            }
            Self::Locked(_) => "another process held a lock of the database for too long; nothing was written",
            Self::ReadOnly(_) => "the database cannot be written to",
            Self::DiskFull(_) => "the disk of the database is full; nothing was written",
            Self::Corrupt(_) => "the contents of the store cannot be read",
            Self::Unavailable(_) => "the store cannot be reached",
        })
    }
}

// The causes of a store's error can contain stored data, so `Debug` omits them.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Locked(source)
            | Self::ReadOnly(source)
            | Self::DiskFull(source)
            | Self::Corrupt(source)
            | Self::Unavailable(source)
            | Self::Unreachable { source, .. }
            | Self::Misconfigured { source: Some(source), .. } => Some(&**source),
            _ => None,
        }
    }
}
