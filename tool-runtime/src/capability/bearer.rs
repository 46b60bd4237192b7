//! [`BearerToken`]: the token of an account at a server of tools.

use crate::capability;
use crate::capability::Secret;

/// The bearer token of an account at a server of tools, as a [`ConnectionBroker`](crate::capability::ConnectionBroker)
/// hands it out for one call.
///
/// A server that needs it is configured with
/// [`RemoteServer::connection`](crate::mcp::source::RemoteServer::connection). The broker runs for each call, with the
/// account that the run maps to the kind, the principal and the tenant. It can refresh a token when that is due, and a
/// revoked token fails at the next call. The token goes to that server alone.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use tool_runtime::Secret;
/// use tool_runtime::capability::{
///     BearerToken, ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest,
/// };
///
/// struct Token(String);
///
/// impl BearerToken for Token {
///     fn token(&self) -> Secret<String> {
///         Secret::new(self.0.clone())
///     }
/// }
///
/// struct Vault;
///
/// #[async_trait]
/// impl ConnectionBroker for Vault {
///     async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
///         match (request.kind, request.principal) {
///             // Look the account up, and refresh its token if that is due.
///             ("tickets", Some("ada")) => Ok(ConnectionHandle::new::<dyn BearerToken>(Arc::new(Token("..".into())))),
///             ("tickets", _) => Err(ConnectionError::Forbidden),
///             _ => Err(ConnectionError::Unknown),
///         }
///     }
/// }
/// ```
#[capability(effect = read_only, kind = "bearer_token")]
pub trait BearerToken {
    /// Returns the token, which follows `Bearer` in the header.
    fn token(&self) -> Secret<String>;
}
