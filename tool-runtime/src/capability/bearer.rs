//! [`BearerToken`]: the connection of a call to a server of tools, which is the token of an account there.

use std::sync::Arc;

use crate::capability;
use crate::capability::{ConnectionHandle, ConnectionRequest, Secret};

/// The bearer token of an account at a server of tools.
#[capability(effect = read_only, kind = "bearer_token")]
pub(crate) trait BearerToken {
    /// Returns the token, which follows `Bearer` in the header.
    fn token(&self) -> &Secret<String>;
}

impl BearerToken for Secret<String> {
    fn token(&self) -> &Self {
        self
    }
}

impl ConnectionHandle {
    /// Wraps the bearer token of an account at a server of tools, for one call.
    ///
    /// A server that needs it is configured with
    /// [`RemoteServer::connection`](crate::mcp::source::RemoteServer::connection). The broker runs for each call, with
    /// the account that the run maps to the kind, the principal and the tenant. It can refresh a token when that is
    /// due, and a revoked token fails at the next call. The token goes to that server alone.
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
    /// Returns whether a [bearer token](ConnectionHandle::bearer_token) is wanted.
    #[must_use]
    pub fn wants_bearer_token(&self) -> bool {
        self.wants::<dyn BearerToken>()
    }
}
