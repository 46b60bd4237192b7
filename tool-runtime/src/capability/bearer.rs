//! [`BearerToken`]: a connection that provides the bearer token of an account at an MCP server.

use std::sync::Arc;

use crate::capability;
use crate::capability::{ConnectionHandle, ConnectionRequest, Secret};

/// The bearer token of an account at an MCP server.
#[capability(effect = read_only, kind = "bearer_token")]
pub(crate) trait BearerToken {
    /// Returns the token, without the word `Bearer` of the header.
    fn token(&self) -> &Secret<String>;
}

impl BearerToken for Secret<String> {
    fn token(&self) -> &Self {
        self
    }
}

impl ConnectionHandle {
    /// Wraps the bearer token of an account at an MCP server, for one call.
    ///
    /// Configure a server that needs a token with
    /// [`RemoteServer::connection`](crate::mcp::source::RemoteServer::connection). For each call, the broker gets the
    /// principal, the tenant, and the account that the run names for this kind of connection. The broker can refresh a
    /// token that is about to expire. If the account was revoked, the broker returns an error, and the call fails. The
    /// token is sent only to that server.
    ///
    /// ```
    /// use async_trait::async_trait;
    /// use tool_runtime::Secret;
    /// use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};
    ///
    /// struct Vault;
    ///
    /// #[async_trait]
    /// impl ConnectionBroker for Vault {
    ///     async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
    ///         match (request.kind, request.principal) {
    ///             // Look the account up, and refresh its token if that is due.
    ///             ("tickets", Some("ada")) => Ok(ConnectionHandle::bearer_token(Secret::new("..".to_owned()))),
    ///             ("tickets", _) => Err(ConnectionError::Forbidden),
    ///             _ => Err(ConnectionError::Unknown),
    ///         }
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn bearer_token(token: Secret<String>) -> Self {
        Self::new::<dyn BearerToken>(Arc::new(token))
    }
}

impl ConnectionRequest<'_> {
    /// Returns whether the request is for a [bearer token](ConnectionHandle::bearer_token).
    #[must_use]
    pub fn wants_bearer_token(&self) -> bool {
        self.wants::<dyn BearerToken>()
    }
}
