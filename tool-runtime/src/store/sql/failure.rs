//! What a database's failures mean.

use sqlx::Error;

use crate::store::StoreError;

/// Whether the same statement can succeed later without anybody's doing: the server was restarted, or it broke the tie
/// of two transactions.
pub(super) fn is_transient(error: &Error) -> bool {
    match error {
        Error::Io(_) | Error::WorkerCrashed => true,
        Error::Database(error) => error.code().is_some_and(|code| {
            let transient = ["08", "40001", "40P01", "53300", "57P01", "57P02", "57P03", "57P05", "25P03"];
            transient.iter().any(|prefix| code.starts_with(prefix)) && code.len() == 5
        }),
        _ => false,
    }
}

/// Whether a table does not exist.
pub(super) fn is_missing(error: &Error) -> bool {
    match error {
        Error::Database(error) => matches!(error.code().as_deref(), Some("1" | "42P01")),
        _ => false,
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Database(error) => error.code().map(std::borrow::Cow::into_owned).unwrap_or_default(),
            Error::ColumnDecode { .. } | Error::Decode(_) => return Self::Corrupt(Box::new(error)),
            _ => return Self::Unavailable(Box::new(error)),
        };
        // SQLite has numbers, whose lowest byte is the kind; PostgreSQL has five characters.
        let kind = if code.len() == 5 { code.as_str() } else { "" };
        let number = if code.len() < 5 { code.parse::<u32>().map_or(0, |code| code & 0xff) } else { 0 };
        match (kind, number) {
            ("55P03", _) | (_, 5 | 6) => Self::Locked(Box::new(error)),
            ("25006", _) | (_, 8) => Self::ReadOnly(Box::new(error)),
            ("53100", _) | (_, 13) => Self::DiskFull(Box::new(error)),
            ("XX001" | "XX002", _) | (_, 11 | 26) => Self::Corrupt(Box::new(error)),
            _ => Self::Unavailable(Box::new(error)),
        }
    }
}
