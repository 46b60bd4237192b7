//! Connections: what a tool borrows when it needs an account of the person it works for.
//!
//! A run maps each kind to a [`ConnectionId`]; a [`ConnectionBroker`] turns the id into a handle when the tool is
//! about to run. Neither ids nor credentials are in arguments, policies, events or records.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;

use crate::capability::injected::Injected;
use crate::capability::requirement::Source;

/// A `#[capability(.., kind = "..")]` trait that needs an account: resolved per call, not bound once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of connection",
    note = "give its trait a kind: `#[capability(effect = .., kind = \"calendar\")]`"
)]
pub trait ConnectionKind: Injected {
    /// The kind, for example `calendar`.
    const KIND: &'static str;
}

/// A resolved connection, lent to one call. It cannot be serialised or printed.
pub struct Connection<C: ?Sized>(Arc<C>);

impl<C: ?Sized> Deref for Connection<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C: ?Sized> fmt::Debug for Connection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection(..)")
    }
}

impl<C: ?Sized + ConnectionKind> Injected for Connection<C> {
    type Effect = C::Effect;
    const NAME: &'static str = C::NAME;

    fn source() -> Source {
        Source::Connection(C::KIND)
    }
}

/// An opaque reference to an account. It names the account, it opens nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConnectionId(Arc<str>);

impl ConnectionId {
    /// Wraps the application's own reference.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The reference, for the broker.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionId(..)")
    }
}

/// What a broker is asked when a tool is about to run.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConnectionRequest<'a> {
    /// The kind that the tool borrows.
    pub kind: &'static str,
    /// The account that the run maps to this kind.
    pub id: &'a ConnectionId,
    /// Who the run acts for.
    pub principal: Option<&'a str>,
    /// The tenant of the run; a broker refuses an id of another tenant.
    pub tenant: Option<&'a str>,
    /// The tool that asks.
    pub tool: &'a str,
}

impl<'a> ConnectionRequest<'a> {
    pub(crate) fn new(
        kind: &'static str,
        id: &'a ConnectionId,
        principal: Option<&'a str>,
        tenant: Option<&'a str>,
        tool: &'a str,
    ) -> Self {
        Self { kind, id, principal, tenant, tool }
    }
}

/// Resolves connection ids, after checking that tenant and principal may use them.
#[async_trait]
pub trait ConnectionBroker: Send + Sync {
    /// Resolves one id for one call.
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError>;
}

#[async_trait]
impl<B: ConnectionBroker + ?Sized> ConnectionBroker for Arc<B> {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        (**self).resolve(request).await
    }
}

/// What a broker answers with: a handle of the trait that the tool borrows.
pub struct ConnectionHandle {
    pub(crate) type_id: TypeId,
    pub(crate) value: Box<dyn Any + Send + Sync>,
}

impl ConnectionHandle {
    /// Wraps an adapter that holds the credentials.
    #[must_use]
    pub fn new<C: ConnectionKind + ?Sized>(adapter: Arc<C>) -> Self {
        Self { type_id: TypeId::of::<Connection<C>>(), value: Box::new(Arc::new(Connection(adapter))) }
    }
}

impl fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionHandle(..)")
    }
}

/// Why a connection is not available. The model learns only that it is not.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionError {
    /// There is no such account.
    Unknown,
    /// The account belongs to another tenant or principal.
    Forbidden,
    /// The account has to be connected again.
    Expired,
    /// Anything else, for operators.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such connection",
            Self::Forbidden => "the connection belongs to someone else",
            Self::Expired => "the connection has to be authorised again",
            Self::Failed(_) => "the connection could not be opened",
        })
    }
}

impl std::error::Error for ConnectionError {}
