//! [`Authorization`]: bearer tokens of requests over HTTP (RFC 6750), and the metadata that tells clients where to get
//! them (RFC 9728).
//!
//! The application verifies a token and returns its party (principal, tenant and roles), audience, expiry and scopes.
//! This module checks the audience, the expiry and the scopes, and answers 401 or 403 as MCP clients expect. It removes
//! the token from the request before other code sees the request.

use std::fmt::{self, Write as _};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use jiff::Timestamp;
use serde_json::json;

use crate::capability::Secret;
use crate::contain::awaited;
use crate::error::BuildError;
use crate::mcp::serve::body::{Body, refused};
use crate::mcp::serve::error::McpServerError;
use crate::runner::RunOptions;

/// The path prefix of a resource's metadata. The path of the resource follows it.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The longest wait for the expiry of a token, because timers have a maximum.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The application's function that verifies a bearer token.
type Verify = dyn Fn(Secret<String>) -> Pin<Box<dyn Future<Output = Option<Verified>> + Send>> + Send + Sync;

/// A verified token: its party, audience, expiry and scopes, as its issuer states them.
///
/// ```
/// use tool_runtime::RunOptions;
/// use tool_runtime::mcp::serve::Verified;
///
/// let run = RunOptions::new().principal("ada").tenant("acme").role("buyer");
/// let expires = "2030-01-01T00:00:00Z".parse()?;
/// let verified = Verified::new(run, "https://tools.example.org/mcp", expires).scope("orders:write");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Verified {
    run: RunOptions,
    audience: Vec<String>,
    expires: Timestamp,
    scopes: Vec<String>,
}

impl Verified {
    /// Creates a token of the party in `run`. It is valid for one resource, `audience`, until `expires`, and has no
    /// scopes.
    pub fn new(run: RunOptions, audience: impl Into<String>, expires: Timestamp) -> Self {
        Self { run, audience: vec![audience.into()], expires, scopes: Vec::new() }
    }

    /// Adds another resource to the token's audience.
    pub fn audience(mut self, resource: impl Into<String>) -> Self {
        self.audience.push(resource.into());
        self
    }

    /// Adds a scope of the token.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Returns the options of the runs of this party, for [`Authenticator`](crate::mcp::serve::Authenticator).
    pub fn run_options(&self) -> RunOptions {
        self.run.clone()
    }

    /// Returns the scopes of the token.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().map(String::as_str)
    }
}

/// Accepts only requests with a valid bearer token.
///
/// A request without a valid token gets 401 with the address of [`resource_metadata`](Self::resource_metadata); a
/// request whose token lacks a scope gets 403. Tokens that have expired or are for another resource are invalid, even
/// if the application's verifier returns them.
///
/// When the token of a request expires, the stream of its response or notifications ends, as if the client had closed
/// it. In the protocol revision 2026-07-28 this cancels the call. In a session, the call continues within its own
/// limits, and the client can get the answer with a request that has a new token.
///
/// ```
/// use tool_runtime::mcp::serve::{Authorization, HttpOptions, Peer, Verified};
/// use tool_runtime::{RunOptions, Secret};
///
/// const RESOURCE: &str = "https://tools.example.org/mcp";
///
/// async fn verify(token: Secret<String>) -> Option<Verified> {
///     // Look it up, or check its signature.
///     let known = token.expose() == "token-of-ada";
///     let expires = "2030-01-01T00:00:00Z".parse().ok()?;
///     known.then(|| Verified::new(RunOptions::new().principal("ada"), RESOURCE, expires))
/// }
///
/// let authorization = Authorization::new(RESOURCE, verify)?.issuer("https://login.example.org");
/// let options = HttpOptions::new().host("tools.example.org").authorization(authorization);
/// // The server's `Authenticator`.
/// let admit = |peer: &Peer<'_>| peer.verified().map(Verified::run_options);
/// # let _ = (options, admit);
/// # Ok::<(), tool_runtime::error::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Authorization {
    resource: String,
    /// The address of the metadata, and its path.
    described: (String, String),
    issuers: Vec<String>,
    scopes: Vec<String>,
    verify: Arc<Verify>,
}

impl Authorization {
    /// Protects the server that has the public address `resource`, such as `https://tools.example.org/mcp`.
    ///
    /// `verify` returns the verified token; `None` if the token is unknown, was revoked, or has a wrong signature. The
    /// server calls it for every request, so a revoked token is refused at the next request. The server passes the
    /// token to no other service.
    ///
    /// # Errors
    /// The address does not begin with `http://` or `https://` and a host, or it has a query, a fragment, an `@`, or a
    /// character that an address cannot contain, such as a space.
    pub fn new<F>(
        resource: impl Into<String>,
        verify: impl Fn(Secret<String>) -> F + Send + Sync + 'static,
    ) -> Result<Self, BuildError>
    where
        F: Future<Output = Option<Verified>> + Send + 'static,
    {
        let resource = resource.into();
        let described = metadata_of(&resource).ok_or_else(|| McpServerError::Resource { address: resource.clone() })?;
        let verify: Arc<Verify> = Arc::new(move |token| Box::pin(verify(token)));
        Ok(Self { resource, described, issuers: Vec::new(), scopes: Vec::new(), verify })
    }

    /// Adds the address of an authorization server that issues tokens for this server.
    pub fn issuer(mut self, address: impl Into<String>) -> Self {
        self.issuers.push(address.into());
        self
    }

    /// Adds a scope that every token needs. For a scope that only some tools need, use a role: let `verify` add the
    /// role to the run, and let the policy set its rights.
    ///
    /// # Errors
    /// The scope violates RFC 6749: it must be one or more characters of printable ASCII, without spaces, `"` and `\`.
    pub fn scope(mut self, scope: impl Into<String>) -> Result<Self, BuildError> {
        let scope = scope.into();
        if !is_scope(&scope) {
            return Err(McpServerError::Scope { scope }.into());
        }
        self.scopes.push(scope);
        Ok(self)
    }

    /// Returns the document that names the token issuers of the server, as JSON (RFC 9728).
    ///
    /// [`McpServer::bind`](crate::mcp::serve::McpServer::bind) serves it. With your own router, serve it at
    /// [`resource_metadata_path`](Self::resource_metadata_path).
    #[must_use]
    pub fn resource_metadata(&self) -> String {
        json!({
            "resource": self.resource,
            "authorization_servers": self.issuers,
            "scopes_supported": self.scopes,
            "bearer_methods_supported": ["header"],
        })
        .to_string()
    }

    /// Returns the path of [`resource_metadata`](Self::resource_metadata), for example
    /// `/.well-known/oauth-protected-resource/mcp`.
    #[must_use]
    pub fn resource_metadata_path(&self) -> &str {
        &self.described.1
    }

    /// Removes the token from the headers of a request and verifies it. Returns the verified token and its remaining
    /// time, or the response that refuses the request.
    pub(super) async fn check(
        &self,
        now: Timestamp,
        headers: &mut HeaderMap,
    ) -> Result<(Verified, Duration), Box<Response<Body>>> {
        let token = token(headers);
        while headers.remove(AUTHORIZATION).is_some() {}
        let Some(token) = token else { return Err(Box::new(self.refuse(StatusCode::UNAUTHORIZED, None))) };
        let verified = awaited(|| (self.verify)(token)).await.map_err(|_| {
            tracing::error!("the application's verifier of tokens panicked, so an MCP client is refused");
            Box::new(refused(StatusCode::INTERNAL_SERVER_ERROR, "The server failed."))
        })?;
        let is_valid = |verified: &Verified| now < verified.expires && verified.audience.contains(&self.resource);
        let Some(verified) = verified.filter(is_valid) else {
            return Err(Box::new(self.refuse(StatusCode::UNAUTHORIZED, Some("invalid_token"))));
        };
        if self.scopes.iter().all(|scope| verified.scopes.contains(scope)) {
            let lasts = Duration::try_from(verified.expires.duration_since(now)).unwrap_or_default();
            return Ok((verified, lasts.min(LONGEST)));
        }
        Err(Box::new(self.refuse(StatusCode::FORBIDDEN, Some("insufficient_scope"))))
    }

    /// Returns the answer to a request whose token expired before the answer was ready.
    pub(super) fn expired(&self) -> Response<Body> {
        self.refuse(StatusCode::UNAUTHORIZED, Some("invalid_token"))
    }

    fn refuse(&self, status: StatusCode, error: Option<&str>) -> Response<Body> {
        let mut challenge = format!("Bearer resource_metadata=\"{}\"", self.described.0);
        if !self.scopes.is_empty() {
            let _ = write!(challenge, ", scope=\"{}\"", self.scopes.join(" "));
        }
        if let Some(error) = error {
            let _ = write!(challenge, ", error=\"{error}\"");
        }
        let text = match status {
            StatusCode::FORBIDDEN => "Forbidden: the token lacks a scope",
            _ => "Unauthorized: a valid bearer token is needed",
        };
        let mut response = refused(status, text);
        let challenge = HeaderValue::try_from(challenge).unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    }
}

/// Whether a string is a valid scope (RFC 6749, section 3.3).
fn is_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E))
}

/// Reads the bearer token of a request. `None` unless there is exactly one credential and it is a bearer token.
fn token(headers: &HeaderMap) -> Option<Secret<String>> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    let is_token = !token.is_empty() && !token.contains(' ') && scheme.eq_ignore_ascii_case("bearer");
    is_token.then(|| Secret::new(token.to_owned()))
}

/// Returns the address and the path of a resource's metadata. `None` if `resource` is not a valid address.
fn metadata_of(resource: &str) -> Option<(String, String)> {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\<>?#@".contains(&byte));
    let (scheme, rest) = resource.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if host.is_empty() || !is_plain(rest) {
        return None;
    }
    let path = format!("{WELL_KNOWN}{}", if path == "/" { "" } else { path });
    Some((format!("{scheme}://{host}{path}"), path))
}

// The application's verifier may contain keys.
impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization").field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").field("run", &self.run).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
