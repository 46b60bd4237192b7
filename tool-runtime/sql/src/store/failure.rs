//! Classifies the failures of a database.

use std::io::ErrorKind;

use sqlx::Error;
use tool_runtime::store::StoreError;

/// Whether the same statement can succeed later without a change of the settings. Examples: the server restarts,
/// possibly behind a proxy that accepts connections; the server or the pool has no free connection; two transactions
/// were in a deadlock or a conflict.
pub(super) fn is_transient(error: &Error) -> bool {
    match error {
        // A rejected certificate is `InvalidData`. `NotFound` is transient, because a starting server has no socket
        // yet.
        Error::Io(error) => !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied),
        // A proxy whose server is down closes the connection, or sends its own answer.
        Error::Protocol(text) => !text.starts_with("unsupported authentication"),
        Error::WorkerCrashed | Error::PoolTimedOut => true,
        Error::Database(error) => error.code().is_some_and(|code| {
            let transient = ["08", "40001", "40P01", "53300", "57P01", "57P02", "57P03", "57P05", "25P03"];
            transient.iter().any(|prefix| code.starts_with(prefix)) && code.len() == 5
        }),
        _ => false,
    }
}

/// Converts a failure of the database to the error of the store.
pub(super) fn failed(error: Error) -> StoreError {
    let code = match &error {
        Error::Database(error) => error.code().map(std::borrow::Cow::into_owned).unwrap_or_default(),
        Error::ColumnDecode { .. } | Error::Decode(_) => return StoreError::Corrupt(Box::new(error)),
        _ => return StoreError::Unavailable(Box::new(error)),
    };
    // SQLite has numeric codes, whose lowest byte is the kind; PostgreSQL has codes of five characters.
    let kind = if code.len() == 5 { code.as_str() } else { "" };
    let number = if code.len() < 5 { code.parse::<u32>().map_or(0, |code| code & 0xff) } else { 0 };
    match (kind, number) {
        ("55P03", _) | (_, 5 | 6) => StoreError::Locked(Box::new(error)),
        ("25006", _) | (_, 8) => StoreError::ReadOnly(Box::new(error)),
        ("53100", _) | (_, 13) => StoreError::DiskFull(Box::new(error)),
        ("XX001" | "XX002", _) | (_, 11 | 26) => StoreError::Corrupt(Box::new(error)),
        _ => StoreError::Unavailable(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn errors_of_a_restarting_server_are_transient() {
        let io = |kind: ErrorKind| Error::Io(io::Error::from(kind));
        for error in [
            Error::Protocol("unexpected response from SSLRequest: 0x00".to_owned()),
            Error::Protocol("unknown message type: 'H'".to_owned()),
            io(ErrorKind::UnexpectedEof),
            io(ErrorKind::ConnectionReset),
            io(ErrorKind::ConnectionRefused),
            io(ErrorKind::NotFound),
            Error::PoolTimedOut,
        ] {
            assert!(is_transient(&error), "{error:?}");
        }
        for error in [
            Error::Protocol("unsupported authentication method: KerberosV5".to_owned()),
            io(ErrorKind::InvalidData),
            io(ErrorKind::PermissionDenied),
            Error::Tls("server does not support TLS".into()),
            Error::Configuration("unknown value".into()),
            Error::RowNotFound,
        ] {
            assert!(!is_transient(&error), "{error:?}");
        }
    }
}
