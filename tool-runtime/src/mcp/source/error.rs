//! [`RequestError`]: why a request to a server has no result.

use std::fmt;

/// The reason why a request has no result. Its `Display` text is for operators, and contains no text of the server. The
/// server's own message is separate ([`message`](Self::message)), because secrets in it must be masked first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestError {
    /// The process could not be started, or the address could not be reached: nothing was sent.
    NotSent(String),
    /// The connection ended.
    Closed,
    /// The process wrote to its standard output, but no message of the protocol.
    NotMcp,
    /// The process exited when it received the handshake.
    NoHandshake,
    /// No answer came in time.
    Timeout,
    /// The answer exceeds the maximum length of a message.
    TooLarge,
    /// The answer cannot be read.
    Unreadable,
    /// A JSON-RPC error, its message bounded and its `data` dropped.
    Refused { code: i64, message: String },
    /// HTTP 401: the server rejected the credentials, or requires some.
    Unauthorized,
    /// An HTTP status that brings no answer: for a request any status except 200 and 401, for a notification any status
    /// except 2xx. With the bounded message of a JSON-RPC error in the body, if there is one.
    Status(u16, Option<String>),
    /// The server violated the protocol.
    Protocol(&'static str),
    /// The connection of an account could not be opened: the call was not sent.
    Account(Box<RequestError>),
    /// A poll of a call's task failed. The call itself may already have had its effect.
    Poll(Box<RequestError>),
}

impl RequestError {
    /// Whether the request certainly had no effect.
    pub(super) const fn had_no_effect(&self) -> bool {
        matches!(
            self,
            Self::NotSent(_)
                | Self::NotMcp
                | Self::NoHandshake
                | Self::Refused { .. }
                | Self::Unauthorized
                | Self::Status(300..=499, _)
                | Self::Account(_)
        )
    }

    /// Returns the server's own message. `None` if there is none.
    pub(super) fn message(&self) -> Option<&str> {
        let message = match self {
            Self::Refused { message, .. } => message,
            Self::Status(_, message) => message.as_deref()?,
            Self::Account(failure) | Self::Poll(failure) => return failure.message(),
            _ => return None,
        };
        (!message.is_empty()).then_some(message)
    }

    /// Whether the next call needs a new session: the connection ended, the answer cannot be read, or the server
    /// rejected the token or may not know the session. The protocol demands HTTP 404 for an unknown session, but many
    /// servers answer with another status.
    pub(super) fn needs_new_session(&self) -> bool {
        match self {
            Self::Closed | Self::Unreadable | Self::Unauthorized | Self::Status(400..=428 | 430..=499, _) => true,
            Self::Poll(failure) => failure.needs_new_session(),
            _ => false,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => f.write_str(why),
            Self::Closed | Self::NoHandshake => f.write_str("the connection ended"),
            Self::NotMcp => f.write_str(
                "the command wrote something to its standard output that is not MCP; check that it is a server, and its \
                 arguments",
            ),
            Self::Timeout => f.write_str("the server did not answer in time"),
            Self::TooLarge => f.write_str("the server sent a message over the size limit"),
            Self::Unreadable => f.write_str("the server sent an answer that cannot be read"),
            Self::Refused { code, .. } => write!(f, "the server refused the request with the code {code}"),
            Self::Unauthorized => f.write_str("the server requires credentials, or refused them (HTTP 401)"),
            Self::Status(status @ 300..=399, _) => {
                write!(f, "the server redirects (HTTP {status}), and redirects are not followed: correct the URL")
            }
            Self::Status(status, _) => write!(f, "the server answered with HTTP {status}"),
            Self::Protocol(what) => f.write_str(what),
            Self::Account(failure) => write!(f, "the connection of the account did not open: {failure}"),
            Self::Poll(failure) => write!(f, "the task of the call could not be polled: {failure}"),
        }
    }
}

impl std::error::Error for RequestError {}
