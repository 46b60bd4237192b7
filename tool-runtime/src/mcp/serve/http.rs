//! [`HttpService`]: the streamable HTTP transport, for the application's own HTTP server.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use rmcp::model::{Extensions, RequestId};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::contain::awaited;
use crate::mcp::serve::McpServer;
use crate::mcp::serve::abandoned;
use crate::mcp::serve::auth::Authorization;
use crate::mcp::serve::authenticator::Peer;
use crate::mcp::serve::body::{Body, refused, unanswered};
use crate::mcp::serve::delivery::{Delivery, Sending};
use crate::mcp::serve::expiry::ExpiringBody;
use crate::mcp::serve::handler::Handler;
use crate::mcp::serve::options::HttpOptions;
use crate::mcp::serve::seats::{Seated, with};
use crate::mcp::serve::sessions::{Begins, Parties, Runs, is_ambiguous, is_without_sessions};
use crate::mcp::serve::{raw, strict};
use crate::runner::{RunOptions, ServedRuns};

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

const FULL: &str = "The server is at its limit of sessions.";

/// The streamable HTTP transport of MCP as a `tower` service. Mount it in a router of the application, whose layers can
/// authenticate requests. It is cheap to clone. [`McpServer::bind`] serves without a router.
///
/// A request gets 403 if its `Origin` or `Host` is not allowed, or if it would begin a session and the
/// [`Authenticator`](crate::mcp::serve::Authenticator) refuses it; 400 if it names several origins, hosts or sessions,
/// or repeats the id of an unanswered request of its session; 413 if its body is too large; 408 if its body does not
/// arrive in time; 503 if there are too many sessions; and 429 if its principal has too many sessions. A session
/// belongs to the party that began it: a request of another party gets 404. With [`HttpOptions::authorization`], a
/// request without a valid token gets 401, and a request whose token lacks a scope gets 403, before its body is read. A
/// response ends when the token of its request expires.
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
    pub(super) parties: Arc<Mutex<Parties>>,
    /// The session and the id of each request in progress that belongs to a session.
    pub(super) running: Arc<Mutex<HashSet<(String, RequestId)>>>,
    max_sessions: usize,
    max_sessions_each: usize,
    max_body: usize,
    body_time: Duration,
    authorization: Option<Authorization>,
}

impl McpServer {
    /// Returns the HTTP transport as a service.
    #[must_use]
    pub fn http(&self, options: &HttpOptions) -> HttpService {
        self.service(options, &options.origins, self.0.calls.closed().child_token())
    }

    /// Returns the service. Its sessions end when `ended` fires.
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
            running: Arc::default(),
            max_sessions: options.max_sessions,
            max_sessions_each: options.max_sessions_each,
            max_body: options.max_body,
            body_time: options.body_time,
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
        abandoned::close_them(&self.server);
        if is_ambiguous(request.uri(), request.headers()) {
            return refused(
                StatusCode::BAD_REQUEST,
                "Bad Request: the request names several hosts, origins or sessions",
            );
        }
        let Some(authorization) = &self.authorization else { return self.authorized(request).await };
        let (mut parts, body) = request.into_parts();
        let (verified, lasts) =
            match authorization.check(ServedRuns(&self.server.0.runner).now(), &mut parts.headers).await {
                Ok(checked) => checked,
                Err(response) => return *response,
            };
        parts.extensions.insert(verified);
        let until = Instant::now() + lasts;
        match timeout(lasts, self.authorized(Request::from_parts(parts, body))).await {
            Ok(response) => {
                response.map(|body| ExpiringBody::body(body, until.saturating_duration_since(Instant::now())))
            }
            Err(_) => authorization.expired(),
        }
    }

    /// Answers a request that passed the authorization.
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
        if !self.parties().sessions.get(&id).is_some_and(is_owner) {
            // The same answer as for a session that has ended.
            return refused(StatusCode::NOT_FOUND, "Not Found: Session not found");
        }
        self.handle(request, Some(id)).await
    }

    /// Answers a request that names no session. The request may create a session.
    async fn without_session<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        let begins = request.method() == Method::POST && !is_without_sessions(request.headers());
        if begins && self.sessions.sessions.read().await.len() >= self.max_sessions {
            return refused(StatusCode::SERVICE_UNAVAILABLE, FULL);
        }
        let (parts, body) = request.into_parts();
        let party = if begins { self.party(&parts).await } else { None };
        let mut begun = None;
        if let Some(party) = &party {
            let sessions = self.sessions.sessions.read().await;
            let mut parties = self.parties();
            parties.sessions.retain(|id, _| sessions.contains_key(id.as_str()));
            // Also count the sessions that are being created: their requests may still wait for a body.
            if sessions.len() + parties.begin.len() >= self.max_sessions {
                return refused(StatusCode::SERVICE_UNAVAILABLE, FULL);
            }
            let theirs = parties.sessions.values().chain(&parties.begin).filter(|one| one.is_principal_of(party));
            if theirs.count() >= self.max_sessions_each {
                return refused(StatusCode::TOO_MANY_REQUESTS, "The principal is at its limit of sessions.");
            }
            parties.begin.push(party.clone());
            begun = Some(Begins { parties: &self.parties, party });
        }
        let response = self.handle(Request::from_parts(parts, body), None).await;
        let Some(Ok(id)) = response.headers().get(SESSION).map(|id| id.to_str()) else { return response };
        if let Some(party) = &party {
            self.parties().sessions.insert(id.to_owned(), party.clone());
            drop(begun);
            return response;
        }
        // Close this session: its party was not admitted, or the session was not counted, because the request's header
        // names a revision without sessions.
        if self.sessions.close_session(&id.into()).await.is_err() {
            tracing::debug!("an unauthenticated session had already ended");
        }
        refused(StatusCode::FORBIDDEN, "Forbidden: this request begins no session")
    }

    /// Passes a request to `rmcp`, with the arguments of a call as its client wrote them.
    async fn handle<B>(&self, request: Request<B>, session: Option<String>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        let (mut parts, body) = request.into_parts();
        let (place, delivery) = (parts.extensions.remove::<Seated>(), Delivery::begin());
        let answered = move |response: Response<Body>, place: Option<Seated>| match place.map(Seated::answered) {
            Some(answered) => response.map(|body| with(body, answered)),
            None => response,
        };
        if parts.method != Method::POST {
            return answered(self.inner.handle(Request::from_parts(parts, body)).await, place);
        }
        let body = Limited::new(Box::pin(body.map_err(|error| error.to_string())), self.max_body);
        let body = match timeout(self.body_time, body.collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return refused(StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large");
            }
            Ok(Err(_)) => return refused(StatusCode::BAD_REQUEST, "Bad Request"),
            Err(_) => {
                let mut late = refused(StatusCode::REQUEST_TIMEOUT, "Request Timeout");
                late.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                return late;
            }
        };
        let place = place.map(Seated::answered);
        let runs = match session.map(|session| Runs::begin(&self.running, session, &body)) {
            Some(Err(id)) => return unanswered(&id, &strict::repeated()),
            Some(Ok(runs)) => runs,
            None => None,
        };
        parts.headers.remove(CONTENT_LENGTH);
        let body = raw::carried(&body).map_or(body, Bytes::from);
        parts.extensions.insert(delivery.clone());
        // Dropping this future marks the answer as undelivered.
        let sending = Sending(delivery);
        let response = self.inner.handle(Request::from_parts(parts, Full::new(body))).await;
        response.map(|body| sending.with(with(body, (place, runs))))
    }

    /// Answers a request to a path other than the server's.
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

    /// Returns the party that a request acts for. `None` if the party is not admitted; it then gets no session.
    async fn party(&self, parts: &http::request::Parts) -> Option<RunOptions> {
        let mut extensions = Extensions::new();
        extensions.insert(parts.clone());
        let peer = Peer::of(&extensions);
        awaited(|| self.server.0.authenticator.authenticate(&peer)).await.ok().flatten()
    }

    fn parties(&self) -> MutexGuard<'_, Parties> {
        self.parties.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
