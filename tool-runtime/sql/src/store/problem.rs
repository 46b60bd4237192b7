//! The errors of a database that cannot be opened. Each names the mistake, its place and a correction, without the
//! password in the URL.

use sqlx::Error;
use tool_runtime::store::StoreError;

use crate::store::failure::failed;

/// Creates the error of a database that cannot be opened with its settings.
pub(super) const fn misconfigured(problem: String) -> StoreError {
    StoreError::Misconfigured { problem, source: None }
}

/// Converts an error of a statement that creates, migrates or checks the tables. The causes are tables that this
/// library did not create, a missing privilege, or a `search_path` without a usable schema. The message contains the
/// text of the database, which quotes only names.
pub(super) fn unlike(error: Error) -> StoreError {
    let Some((code, text)) = of_database(&error) else { return failed(error) };
    let problem = match code.as_str() {
        // SQLite has one code, `1`, for all of these problems.
        "1" | "42P01" | "42P07" | "42703" | "42704" | "42P16" => format!(
            "the tables of the database are not those of this library ({text}): choose another prefix \
             (`SqlOptions::table_prefix`) if they are another application's, or restore the database"
        ),
        "42501" => format!(
            "the user of the database lacks a privilege ({text}): GRANT CREATE ON SCHEMA to it, or run `store migrate` \
             as the owner and GRANT SELECT, INSERT, UPDATE, DELETE on the tables"
        ),
        "3F000" => format!(
            "the user of the database may not use any schema of the `search_path` ({text}): create one and grant \
             USAGE on it, or set another `search_path` in the URL"
        ),
        _ => return failed(error),
    };
    StoreError::Misconfigured { problem, source: Some(Box::new(error)) }
}

fn of_database(error: &Error) -> Option<(String, String)> {
    let error = error.as_database_error()?;
    Some((error.code()?.into_owned(), error.message().to_owned()))
}

/// The address of a server without its secrets.
#[cfg(feature = "postgres")]
pub(super) struct Address {
    place: String,
    host: String,
    user: String,
    database: String,
    is_socket: bool,
}

#[cfg(feature = "postgres")]
impl Address {
    pub(super) fn of(options: &sqlx::postgres::PgConnectOptions) -> Self {
        let (host, port) = (options.get_host().to_owned(), options.get_port());
        let socket = options.get_socket().map(|folder| folder.display().to_string());
        let socket = socket.or_else(|| host.starts_with('/').then(|| host.clone()));
        let is_socket = socket.is_some();
        let user = options.get_username().to_owned();
        let database = options.get_database().unwrap_or(&user).to_owned();
        let place = socket.map_or_else(|| format!("{host}:{port}"), |folder| format!("{folder}, port {port}"));
        Self { place, host, user, database, is_socket }
    }

    /// Whether a file that the URL names is missing. `false` for a missing socket, because the server may be starting.
    pub(super) fn lacks_file(&self, error: &Error) -> bool {
        matches!(error, Error::Io(error) if error.kind() == std::io::ErrorKind::NotFound) && !self.is_socket
    }

    /// Returns the error for a refused connection, with its reason.
    pub(super) fn refused(&self, error: Error) -> StoreError {
        let Self { place, host, user, database, .. } = self;
        let problem = match &error {
            Error::Database(refused) => match refused.code().as_deref() {
                Some("28P01") => format!(
                    "the server at {place} refuses the password of the user `{user}`: correct it in the URL, in \
                     PGPASSWORD or in the password file"
                ),
                Some("28000") => format!(
                    "the server at {place} does not let the user `{user}` in: correct the name in the URL, or allow it in \
                     the server's pg_hba.conf"
                ),
                Some("3D000") => format!(
                    "the server at {place} has no database `{database}`: correct the name after the host in the URL, \
                     or create the database with CREATE DATABASE"
                ),
                Some("42501") => format!(
                    "the user `{user}` may not connect to the database `{database}` at {place}: GRANT CONNECT ON DATABASE"
                ),
                Some("53300") => {
                    let problem = format!(
                        "the server at {place} has no free connection: raise its max_connections, or lower the number of \
                         connections (`SqlOptions::connections`) of all processes"
                    );
                    return StoreError::Unreachable { problem, source: Box::new(error) };
                }
                Some(code) => {
                    let problem = format!("the server at {place} refuses the connection with the SQLSTATE {code}");
                    return StoreError::Unreachable { problem, source: Box::new(error) };
                }
                None => return self.unreachable(error),
            },
            Error::Tls(_) if error.to_string().contains("does not support TLS") => format!(
                "the server at {place} has no TLS, and `sslmode` in the URL asks for it: set `ssl = on` at the server, or \
                 write sslmode=prefer where the network is trusted"
            ),
            Error::Io(io) if io.kind() == std::io::ErrorKind::InvalidData => {
                let text = io.to_string();
                if text.contains("not valid for name") || text.contains("NotValidForName") {
                    format!(
                        "the certificate of the server at {place} is not for `{host}`: write the certificate's name \
                         as the host of the URL, or sslmode=verify-ca if any certificate of the authority is acceptable"
                    )
                } else if text.contains("UnknownIssuer") {
                    format!(
                        "the certificate of the server at {place} was issued by an unknown authority: add \
                         sslrootcert=FILE to the URL, with the file of the authority's certificate"
                    )
                } else {
                    format!("the server at {place} and this process cannot agree on a TLS session: {text}")
                }
            }
            Error::Tls(_) => format!("TLS with the server at {place} cannot be set up: {error}"),
            Error::Io(_) if self.lacks_file(&error) => {
                "a file that the URL names (sslrootcert, sslcert or sslkey) does \
                                                        not exist: correct its path"
                    .to_owned()
            }
            Error::Protocol(text) if text.starts_with("unsupported authentication") => format!(
                "the server at {place} requires an authentication method that this library does not support: allow \
                 `scram-sha-256` for the user `{user}` in pg_hba.conf"
            ),
            _ => return self.unreachable(error),
        };
        StoreError::Misconfigured { problem, source: Some(Box::new(error)) }
    }

    fn unreachable(&self, error: Error) -> StoreError {
        let problem = format!(
            "no PostgreSQL server answers at {}: check that it runs there, and that host and port of the URL are right",
            self.place
        );
        StoreError::Unreachable { problem, source: Box::new(error) }
    }
}

/// Creates the error of a malformed URL. The parser's own error can quote the URL, so its text is left out.
#[cfg(feature = "postgres")]
pub(super) fn address(error: &Error) -> StoreError {
    let text = error.to_string();
    misconfigured(
        if text.contains("ssl_mode") {
            "`sslmode` in the URL of the database is not one of disable, allow, prefer, require, verify-ca, verify-full"
        } else {
            "the URL of the database cannot be read: write postgres://USER@HOST:PORT/DATABASE, and percent-encode all \
             characters of the password except letters and digits"
        }
        .to_owned(),
    )
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use std::borrow::Cow;
    use std::{error, fmt};

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// A refusal of a server with this code.
    #[derive(Debug)]
    struct Refusal(&'static str);

    impl fmt::Display for Refusal {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl error::Error for Refusal {}

    impl DatabaseError for Refusal {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn error::Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    #[test]
    fn a_server_that_refuses_is_told_apart_from_none() {
        let address = Address::of(&"postgres://app@db.example/orders".parse().unwrap());
        let refused = |error| address.refused(error).detail();
        let full = refused(Error::Database(Box::new(Refusal("53300"))));
        assert!(full.contains("no free connection") && full.contains("SqlOptions::connections"), "{full}");
        let other = refused(Error::Database(Box::new(Refusal("57P03"))));
        assert!(other.contains("refuses the connection with the SQLSTATE 57P03"), "{other}");
        let silent = refused(Error::PoolTimedOut);
        assert!(silent.contains("no PostgreSQL server answers"), "{silent}");
    }
}
