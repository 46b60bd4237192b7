//! [`LockError`]: why a text is not a lock.

use std::fmt;

/// Why a text cannot be read as a lock, with the line where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockError {
    /// The text is longer than 32 MiB.
    TooLarge,
    /// A line begins with a mark that a merge left.
    Merge {
        /// The line, from 1.
        line: usize,
        /// The mark.
        mark: &'static str,
    },
    /// The text is not JSON, ends early, or repeats a key.
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The mistake there.
        message: String,
    },
    /// The document is written by another version of the library.
    Version {
        /// The version that it names.
        found: u64,
    },
    /// The document is not a lock: a member is missing or unknown.
    Shape(String),
}

impl LockError {
    /// Returns a stable word for each kind.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "lock_too_large",
            Self::Merge { .. } => "lock_merge",
            Self::Malformed { .. } => "lock_malformed",
            Self::Version { .. } => "lock_version",
            Self::Shape(_) => "lock_shape",
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "the lock is longer than {} MiB", super::MAX_BYTES >> 20),
            Self::Merge { line, mark } => {
                write!(
                    f,
                    "line {line} begins with `{mark}`, a merge conflict; take either side, then write the lock again"
                )
            }
            Self::Malformed { message, .. } => write!(f, "{message}; restore the lock, or remove it and write it anew"),
            Self::Version { found } => {
                let known = super::VERSION;
                write!(
                    f,
                    "the lock has version {found}, this library reads version {known}; remove the lock and write it anew"
                )
            }
            Self::Shape(message) => write!(f, "this is not a lock: {message}"),
        }
    }
}

impl std::error::Error for LockError {}
