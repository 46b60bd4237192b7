//! [`HttpService`]: the streamable HTTP transport, for a server of the application's own.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::contain::awaited;
use crate::mcp::serve::McpServer;
use crate::mcp::serve::admit::Peer;
use crate::mcp::serve::auth::Authorization;
use crate::mcp::serve::expiry::Lasting;
use crate::mcp::serve::handler::Handler;
use crate::mcp::serve::options::HttpOptions;
use crate::mcp::serve::raw;
use crate::runner::RunOptions;

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// The header with the revision of the protocol.
const REVISION: &str = "mcp-protocol-version";

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// The streamable HTTP transport as a `tower` service, for a router of the application, whose layers authenticate.
/// Cheap to clone. [`McpServer::bind`] serves without a router.
///
/// A request whose `Origin` or `Host` is not allowed gets 403, a body that is too large 413, and a session too many 503.
/// A session belongs to whom it began for: a request of another party gets 404. With
/// [`HttpOptions::authorization`] a request without a valid token gets 401, before anything else of it is looked at, and
/// what a request gets ends when its token expires.
///
/// ```no_run
/// # fn mounted(server: &tool_runtime::mcp::serve::McpServer) {
/// use tool_runtime::mcp::serve::{HttpOptions, HttpService};
///
/// let options = HttpOptions::new().host("tools.example.org").origin("https://app.example.org:443");
/// let service: HttpService = server.http(&options);
/// // With axum: `Router::new().nest_service("/mcp", service)`
/// # }
/// ```
#[derive(Clone)]
pub struct HttpService {
    server: McpServer,
    inner: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    parties: Arc<Mutex<HashMap<String, RunOptions>>>,
    max_sessions: usize,
    max_body: usize,
    authorization: Option<Authorization>,
}

impl McpServer {
    /// Returns the HTTP transport as a service.
    #[must_use]
    pub fn http(&self, options: &HttpOptions) -> HttpService {
        self.service(options, &options.origins, self.0.calls.closed().child_token())
    }

    /// `ended` ends the sessions.
    pub(super) fn service(&self, options: &HttpOptions, origins: &[String], ended: CancellationToken) -> HttpService {
        let mut config = StreamableHttpServerConfig::default()
            .with_allowed_origins(origins)
            .enforce_origin_validation()
            .with_max_request_body_bytes(raw::longest(options.max_body))
            .with_cancellation_token(ended);
        config.allowed_hosts.extend(options.hosts.iter().cloned());
        let sessions = Arc::new(LocalSessionManager::default());
        let server = self.clone();
        let inner = StreamableHttpService::new(move || Ok(Handler::new(server.clone())), Arc::clone(&sessions), config);
        HttpService {
            server: self.clone(),
            inner,
            sessions,
            parties: Arc::default(),
            max_sessions: options.max_sessions,
            max_body: options.max_body,
            authorization: options.authorization.clone(),
        }
    }
}

impl HttpService {
    /// Answers one request.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        self.server.look_after();
        let Some(authorization) = &self.authorization else { return self.authorized(request).await };
        let (mut parts, body) = request.into_parts();
        let (verified, lasts) = match authorization.check(&self.server, &mut parts.headers).await {
            Ok(checked) => checked,
            Err(response) => return *response,
        };
        parts.extensions.insert(verified);
        let until = Instant::now() + lasts;
        match timeout(lasts, self.authorized(Request::from_parts(parts, body))).await {
            Ok(response) => response.map(|body| Lasting::body(body, until.saturating_duration_since(Instant::now()))),
            Err(_) => authorization.expired(),
        }
    }

    /// Answers a request that may be made.
    async fn authorized<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        let named = request.headers().get(SESSION).map(|id| id.to_str().unwrap_or_default().to_owned());
        let Some(id) = named else { return self.without_session(request).await };
        let (parts, body) = request.into_parts();
        let party = self.party(&parts).await;
        let request = Request::from_parts(parts, body);
        let is_owner = |owner: &RunOptions| party.as_ref().is_some_and(|party| party.is_party_of(owner));
        if !self.parties.lock().unwrap_or_else(PoisonError::into_inner).get(&id).is_some_and(is_owner) {
            // The same as for a session that has ended.
            return refused(StatusCode::NOT_FOUND, "Not Found: Session not found");
        }
        self.handle(request).await
    }

    /// Answers a request that names no session. It may begin one.
    async fn without_session<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        let begins = request.method() == Method::POST && !is_without_sessions(request.headers());
        if begins && self.sessions.sessions.read().await.len() >= self.max_sessions {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "The server has as many sessions as it may.");
        }
        let (parts, body) = request.into_parts();
        let party = if begins { self.party(&parts).await } else { None };
        let response = self.handle(Request::from_parts(parts, body)).await;
        let Some(Ok(id)) = response.headers().get(SESSION).map(|id| id.to_str()) else { return response };
        if let Some(party) = party {
            self.keep(id.to_owned(), party).await;
            return response;
        }
        // Nobody could use it: that of somebody who is not let in, or of a request whose header names a revision without
        // sessions, which was not counted.
        if self.sessions.close_session(&id.into()).await.is_err() {
            tracing::debug!("a session of nobody had ended already");
        }
        refused(StatusCode::FORBIDDEN, "Forbidden: this request begins no session")
    }

    /// Hands a request on, with the arguments of a call as its client wrote them.
    async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        if request.method() != Method::POST {
            return self.inner.handle(request).await;
        }
        let (mut parts, body) = request.into_parts();
        let body = Limited::new(Box::pin(body.map_err(|error| error.to_string())), self.max_body);
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return refused(StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large");
            }
            Err(_) => return refused(StatusCode::BAD_REQUEST, "Bad Request"),
        };
        // Headers that repeat arguments are compared with them.
        let repeats = parts.headers.keys().any(|name| name.as_str().starts_with("mcp-param-"));
        let carried = if repeats { None } else { raw::carried(&body) };
        parts.headers.remove(CONTENT_LENGTH);
        self.inner.handle(Request::from_parts(parts, Full::new(carried.map_or(body, Bytes::from)))).await
    }

    /// Answers a request to another path than that of the server.
    pub(super) fn elsewhere(&self, method: &Method, path: &str) -> Response<Body> {
        match &self.authorization {
            Some(authorization) if method == Method::GET && path == authorization.resource_metadata_path() => {
                let mut response = Response::new(Full::new(Bytes::from(authorization.resource_metadata())).boxed());
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                response
            }
            _ => refused(StatusCode::NOT_FOUND, "Not Found"),
        }
    }

    /// Whom a request acts for; `None` for nobody, who gets no session.
    async fn party(&self, parts: &http::request::Parts) -> Option<RunOptions> {
        let mut extensions = Extensions::new();
        extensions.insert(parts.clone());
        let peer = Peer::of(&extensions);
        awaited(|| self.server.0.admit.admit(&peer)).await.ok().flatten()
    }

    /// Remembers whose a session is, and forgets those that have ended.
    async fn keep(&self, id: String, party: RunOptions) {
        let sessions = self.sessions.sessions.read().await;
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        if parties.len() >= self.max_sessions {
            parties.retain(|id, _| sessions.contains_key(id.as_str()));
        }
        parties.insert(id, party);
    }
}

/// Whether a request is of a revision that has no sessions.
fn is_without_sessions(headers: &HeaderMap) -> bool {
    headers.get(REVISION).and_then(|one| one.to_str().ok()).is_some_and(|one| one >= "2026-07-28")
}

pub(super) fn refused(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("server", &self.server).finish_non_exhaustive()
    }
}
