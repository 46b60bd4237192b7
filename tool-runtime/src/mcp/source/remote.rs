//! [`Remote`]: the handler of an MCP server's tool, which the gate runs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use serde_json::Value;

use crate::call::ToolContext;
use crate::capability::Secret;
use crate::component::WithMedia;
use crate::error::{ErrorKind, ToolError};
use crate::mcp::source::error::RequestError;
use crate::mcp::source::http::headers::ParamHeader;
use crate::mcp::source::result::{self, Secrets};
use crate::mcp::source::server::{Need, Server};
use crate::mcp::source::state::ServerState;
use crate::mcp::source::tasks;
use crate::registration::{AccountHandler, DynamicHandler, NotReady, Published};
use crate::tool::Hash;

/// A tool of an MCP server, with its definition in the catalog.
pub(super) struct Remote {
    pub(super) server: Server,
    /// The server's own name for the tool.
    pub(super) raw: String,
    pub(super) name: String,
    pub(super) pin: Hash,
    /// The arguments that are also sent as headers.
    pub(super) headers: Vec<ParamHeader>,
    /// Whether its definition has a schema of `structuredContent`.
    pub(super) is_structured: bool,
}

#[async_trait]
impl DynamicHandler for Remote {
    async fn call(&self, arguments: &Value, context: &ToolContext) -> Result<Value, ToolError> {
        Ok(self.call_with_media(arguments, context).await?.into_parts().0)
    }

    async fn call_with_media(&self, arguments: &Value, _: &ToolContext) -> Result<WithMedia<Value>, ToolError> {
        self.called(arguments, None).await
    }
}

#[async_trait]
impl AccountHandler for Remote {
    async fn call_on(&self, token: &Secret<String>, arguments: &Value) -> Result<WithMedia<Value>, ToolError> {
        self.called(arguments, Some(token)).await
    }
}

impl Remote {
    /// Makes one call. It is never repeated, even if its outcome is unknown.
    async fn called(&self, arguments: &Value, token: Option<&Secret<String>>) -> Result<WithMedia<Value>, ToolError> {
        let not_sent = |why: &str, code: &'static str| ToolError::of_source(ErrorKind::Tool, why).with_code(code);
        if self.pin() != Some(self.pin) {
            return Err(not_sent("the server publishes another definition of the tool, or none", "definition_changed"));
        }
        let Some(connection) = self.server.state.connection() else {
            return Err(not_sent("the connection ended before the call was sent", "server_unavailable"));
        };
        let answered = match token {
            None => {
                tasks::call(&connection, (&self.raw, &self.headers), arguments, self.server.state.limits.call).await
            }
            Some(token) => self.on_account(arguments, token).await,
        };
        let secrets = Secrets::of(&self.server.state.diagnostics, token);
        match answered {
            Ok(text) => result::read(&text, self.is_structured, &secrets),
            Err(RequestError::Unauthorized) => Err(self.unauthorized()),
            Err(failure) => Err(result::failed(&failure, &secrets)),
        }
    }

    /// Makes the call over the connection of an account. Opens the connection if there is none.
    async fn on_account(&self, arguments: &Value, token: &Secret<String>) -> Result<Box<str>, RequestError> {
        let ServerState { http, limits, accounts, .. } = &*self.server.state;
        let Some(http) = http else { return Err(RequestError::NotSent("the URL cannot be used".to_owned())) };
        // If the connection did not open, the call was not sent.
        let connection = accounts.of(http, limits, token).await.map_err(|failure| match failure {
            RequestError::Unauthorized => failure,
            failure => RequestError::Account(Box::new(failure)),
        })?;
        let answered = tasks::call(&connection, (&self.raw, &self.headers), arguments, limits.call).await;
        // The next call opens a new session. This call is not repeated.
        if answered.as_ref().is_err_and(RequestError::needs_new_session) {
            accounts.discard(&connection);
        }
        answered
    }

    /// Returns the error for rejected credentials, which are the token of an account or the configured headers. The
    /// call had no effect.
    fn unauthorized(&self) -> ToolError {
        let id = &self.server.state.id;
        match self.server.state.kind() {
            Some(kind) => {
                let why = format!("the server `{id}` refused the token of the connection `{kind}` (HTTP 401)");
                ToolError::of_source(ErrorKind::Unauthorized, why)
            }
            None => {
                let why = format!(
                    "the server `{id}`: {}; correct its headers, or name a connection",
                    RequestError::Unauthorized
                );
                ToolError::of_source(ErrorKind::Tool, why).with_code("server_unavailable")
            }
        }
    }
}

#[async_trait]
impl Published for Remote {
    fn pin(&self) -> Option<Hash> {
        self.server.state.pin(&self.name)
    }

    fn changes(&self) -> &Arc<AtomicU64> {
        &self.server.state.changes
    }

    async fn ready(&self) -> Result<(), NotReady> {
        self.server.ready(Need::Fresh).await
    }
}
