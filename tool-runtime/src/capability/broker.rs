//! [`ConnectionBroker`]: turns the id of an account into an implementation of a capability trait, for one call.

use std::any::{Any, TypeId};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::capability::connection::{Connection, ConnectionId, ConnectionKind, connection_type};
use crate::capability::requirement::Requirement;

/// Opens the account behind a connection id, after checking that the tenant and the principal may use it.
///
/// Implementations need `#[async_trait]` of the `async-trait` crate. The runner calls the broker just before a tool
/// runs, within the tool's timeout.
///
/// Several traits can have the same kind, for example one that reads an account and one that writes to it. Then
/// [`ConnectionRequest::wants`] shows which of them the tool borrows.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use tool_runtime::capability;
/// use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};
///
/// /// Reads mail.
/// #[capability(effect = read_only, kind = "mail")]
/// trait Inbox { fn unread(&self) -> usize; }
///
/// /// Sends mail.
/// #[capability(effect = external_side_effect, kind = "mail")]
/// trait Outbox { fn send(&self, to: &str); }
///
/// struct Mailbox { owner: String }
/// impl Inbox for Mailbox { fn unread(&self) -> usize { 3 } }
/// impl Outbox for Mailbox { fn send(&self, _to: &str) {} }
///
/// struct Mailboxes;
///
/// #[async_trait]
/// impl ConnectionBroker for Mailboxes {
///     async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
///         if request.tenant != Some("acme") {
///             return Err(ConnectionError::Forbidden);
///         }
///         let mailbox = Arc::new(Mailbox { owner: request.id.as_str().to_owned() });
///         if request.wants::<dyn Outbox>() {
///             Ok(ConnectionHandle::new::<dyn Outbox>(mailbox))
///         } else {
///             Ok(ConnectionHandle::new::<dyn Inbox>(mailbox))
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait ConnectionBroker: Send + Sync {
    /// Opens one account for one call.
    ///
    /// # Errors
    /// The account is unknown, belongs to another principal, or cannot be opened.
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError>;
}

#[async_trait]
impl<B: ConnectionBroker + ?Sized> ConnectionBroker for Arc<B> {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        (**self).resolve(request).await
    }
}

/// A request to open an account, which a broker gets just before a tool runs.
///
/// [`ConnectionBroker`] has an example.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConnectionRequest<'a> {
    /// The kind of the connection, for example `mail`.
    pub kind: &'static str,
    /// The account that the run maps to this kind.
    pub id: &'a ConnectionId,
    /// The principal that the run acts for; `None` if the run names none.
    pub principal: Option<&'a str>,
    /// The tenant of the run; `None` if the run names none. A broker must refuse the account of another tenant.
    pub tenant: Option<&'a str>,
    /// The tool that borrows the connection.
    pub tool: &'a str,
    /// The requirement of the tool that this request is for.
    pub(crate) wanted: &'a Requirement,
}

impl ConnectionRequest<'_> {
    /// Returns whether the tool borrows `&Connection<C>`. If so, return a handle of `C`.
    #[must_use]
    pub fn wants<C: ConnectionKind + ?Sized>(&self) -> bool {
        self.wanted.type_id == connection_type::<C>()
    }

    /// Returns the name of the trait that the tool borrows, without its path, for messages and logs.
    #[must_use]
    pub fn trait_name(&self) -> &'static str {
        self.wanted.name
    }
}

/// A broker's answer: an adapter behind the trait that the tool borrows.
///
/// [`ConnectionBroker`] has an example.
pub struct ConnectionHandle {
    pub(crate) type_id: TypeId,
    /// An `Arc<Connection<C>>`.
    pub(crate) value: Arc<dyn Any + Send + Sync>,
}

impl ConnectionHandle {
    /// Wraps an adapter that holds the credentials.
    #[must_use]
    pub fn new<C: ConnectionKind + ?Sized>(adapter: Arc<C>) -> Self {
        Self { type_id: connection_type::<C>(), value: Arc::new(Arc::new(Connection::new(adapter))) }
    }
}

impl fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionHandle(..)")
    }
}

/// The reason why an account could not be opened. Operators see the variant; the model sees only whether the user can
/// connect an account (`connection_unavailable`) or the service failed (`connection_failed`).
///
/// ```
/// use std::error::Error;
/// use tool_runtime::capability::ConnectionError;
///
/// let error = ConnectionError::Failed("the token database is down".into());
/// assert_eq!(error.to_string(), "the connection could not be opened");
/// assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the token database is down"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionError {
    /// There is no such account.
    Unknown,
    /// The account belongs to another tenant or principal.
    Forbidden,
    /// The account has to be connected again.
    Expired,
    /// The broker itself failed, for example because its database is down. The error is for operators.
    Failed(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such connection",
            Self::Forbidden => "the connection belongs to another principal",
            Self::Expired => "the connection has to be authorised again",
            Self::Failed(_) => "the connection could not be opened",
        })
    }
}

impl Error for ConnectionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(source) => Some(&**source),
            Self::Unknown | Self::Forbidden | Self::Expired => None,
        }
    }
}
