//! [`Http`]: a connection to a server over streamable HTTP. It sends each message in a POST request, and the server
//! answers with JSON or a stream of events. It does not follow redirects, and ignores the proxy settings of the
//! environment.

pub(super) mod headers;
mod listen;
mod resume;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
use tokio::sync::Semaphore;

use crate::agent::http::http_client;
use crate::capability::Secret;
use crate::mcp::header::{PREFIX, encode};
use crate::mcp::source::config::STATELESS;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::hints::Hints;
use crate::mcp::source::message::{self, Incoming};
use crate::wire::EventStream;

use resume::StreamEnd;

/// The time limit for sending a notification.
const NOTIFY: Duration = Duration::from_secs(5);

/// The maximum number of answers to server requests that are being sent at a time. Further server requests get no
/// answer.
const MAX_ANSWERS: usize = 16;

/// The longest id of a session, in bytes.
const MAX_SESSION_BYTES: usize = 1024;

/// Headers that this client sets itself.
const OWN_HEADERS: [&str; 9] = [
    "last-event-id",
    "accept",
    "content-type",
    "content-length",
    "host",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
];

/// A connection to a URL. Cheap to clone; clones share the session.
#[derive(Clone)]
pub(super) struct Http(Arc<Inner>);

struct Inner {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// The token of an account, as a header value.
    token: Option<HeaderValue>,
    max: usize,
    session: Mutex<Session>,
    /// One permit for each answer to a request of the server.
    answers: Arc<Semaphore>,
    hints: Arc<Hints>,
}

/// The values of the headers by which proxies route a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Route<'a> {
    /// The name of the tool, or the id of the task.
    pub(super) name: Option<&'a str>,
    /// The arguments that the server wants in headers.
    pub(super) params: &'a [(HeaderName, HeaderValue)],
}

impl<'a> Route<'a> {
    pub(super) const fn to(name: &'a str) -> Self {
        Self { name: Some(name), params: &[] }
    }
}

/// The results of the handshake.
#[derive(Default, Clone)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    is_gone: bool,
}

impl Http {
    /// Creates a connection after checking the URL and the headers. The text of an error contains neither the URL nor a
    /// header's value.
    pub(super) fn new(
        url: &str,
        headers: &[(String, Secret<String>)],
        max: usize,
        connect: Duration,
        hints: Arc<Hints>,
    ) -> Result<Self, String> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or("the URL does not begin with http:// or https://, or names no host; correct it")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL holds a password; send it with a header".to_owned());
        }
        let mut own = HeaderMap::new();
        for (name, value) in headers {
            let key =
                HeaderName::try_from(name).map_err(|_| format!("`{}` is not a header name", name.escape_debug()))?;
            if OWN_HEADERS.contains(&key.as_str()) || key.as_str().starts_with(PREFIX) {
                return Err(format!("the header `{key}` is set by the client; leave it out"));
            }
            let mut value = HeaderValue::try_from(value.expose())
                .map_err(|_| format!("the value of the header `{key}` cannot be sent; correct it"))?;
            value.set_sensitive(true);
            own.insert(key, value);
        }
        let client = http_client(&[])?.connect_timeout(connect).build().map_err(|error| error.to_string())?;
        let (session, answers) = (Mutex::default(), Arc::new(Semaphore::new(MAX_ANSWERS)));
        Ok(Self(Arc::new(Inner { client, url, headers: own, token: None, max, session, answers, hints })))
    }

    /// Returns a connection to the same server, with the token of an account and a new session.
    pub(super) fn with_token(&self, token: &Secret<String>) -> Result<Self, RequestError> {
        let invalid = |_| RequestError::NotSent("the token of the connection cannot be sent in a header".to_owned());
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose())).map_err(invalid)?;
        value.set_sensitive(true);
        let Inner { client, url, headers, max, hints, .. } = &*self.0;
        Ok(Self(Arc::new(Inner {
            client: client.clone(),
            url: url.clone(),
            headers: headers.clone(),
            token: Some(value),
            max: *max,
            session: Mutex::default(),
            answers: Arc::new(Semaphore::new(MAX_ANSWERS)),
            hints: Arc::clone(hints),
        })))
    }

    /// Whether the server ended the session.
    pub(super) fn is_closed(&self) -> bool {
        self.session().is_gone
    }

    /// Forgets the session of an earlier connection.
    pub(super) fn forget(&self) {
        *self.session() = Session::default();
    }

    /// Sets the revision that every later request names.
    pub(super) fn speak(&self, version: &'static str) {
        self.session().version = Some(HeaderValue::from_static(version));
    }

    /// Sends a request and reads until its answer. Dropping the future cancels the request at the server.
    pub(super) async fn request(
        &self,
        id: u64,
        method: &str,
        route: Route<'_>,
        text: String,
    ) -> Result<Box<str>, RequestError> {
        let mut pending = Pending { http: self, id, is_open: method != "initialize" };
        let result = self.answered(id, method, route, text).await;
        pending.is_open = false;
        result
    }

    async fn answered(&self, id: u64, method: &str, route: Route<'_>, text: String) -> Result<Box<str>, RequestError> {
        let mut response = self.routed(method, route, text).send().await.map_err(|error| {
            if error.is_connect() {
                return RequestError::NotSent("the address of the server cannot be reached".to_owned());
            }
            RequestError::Closed
        })?;
        let status = response.status().as_u16();
        if status == 401 {
            return Err(RequestError::Unauthorized);
        }
        if status == 404 && self.session().id.is_some() {
            self.session().is_gone = true;
        }
        if method == "initialize" && status == 200 {
            let given = response.headers().get("mcp-session-id").filter(|id| id.len() <= MAX_SESSION_BYTES);
            self.session().id = given.cloned();
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let is_json = kind.starts_with("application/json");
        if status == 200 && is_stream {
            return self.whole(id, response).await;
        }
        // Older servers answer unknown methods with an HTTP status and a JSON-RPC error in the body.
        if is_json && matches!(status, 200 | 400..=499) {
            let body = self.body(&mut response).await?;
            return match message::read(&body) {
                Some(Incoming::Answer(answered, result)) if answered == id => result,
                _ if status == 200 => Err(RequestError::Unreadable),
                _ => Err(RequestError::Status(status, message::reason(&body))),
            };
        }
        Err(if status == 200 { RequestError::Unreadable } else { RequestError::Status(status, None) })
    }

    async fn body(&self, response: &mut Response) -> Result<String, RequestError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| RequestError::Closed)? {
            if body.len() + chunk.len() > self.0.max {
                return Err(RequestError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        String::from_utf8(body).map_err(|_| RequestError::Unreadable)
    }

    /// Reads a stream until the answer to the request `id`. `None` if the stream ends first. Sets `place` to the end of
    /// the stream, for resumption.
    async fn stream(
        &self,
        id: u64,
        response: &mut Response,
        place: &mut StreamEnd,
    ) -> Result<Option<Box<str>>, RequestError> {
        let mut events = EventStream::new(self.0.max);
        let (mut found, mut asked, mut ended) = (None, Vec::new(), false);
        // A broken connection is treated as the end of the stream.
        while let Ok(Some(chunk)) = response.chunk().await {
            let pushed = events.push(&chunk, &mut |frame| {
                match std::str::from_utf8(frame.data).ok().and_then(message::read) {
                    Some(Incoming::Answer(answered, result)) if answered == id => found = Some(result),
                    Some(Incoming::Request { id, is_ping }) if asked.len() < MAX_ANSWERS => asked.push((id, is_ping)),
                    Some(Incoming::Notification(notification)) => {
                        ended |= self.0.hints.notify(notification) == Some(id);
                    }
                    _ => {}
                }
                found.is_none() && !ended
            });
            pushed.map_err(|_| RequestError::TooLarge)?;
            if ended || found.is_some() {
                return found.unwrap_or(Err(RequestError::Closed)).map(Some);
            }
            place.is_now(&events);
            asked.drain(..).for_each(|(id, is_ping)| self.reply(message::answer(&id, is_ping)));
        }
        Ok(None)
    }

    /// Sends a message that has no answer, and waits until the server has received it.
    pub(super) async fn tell(&self, text: String) -> Result<(), RequestError> {
        let response = self.post(text).timeout(NOTIFY).send().await.map_err(|_| RequestError::Closed)?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(RequestError::Status(response.status().as_u16(), None))
        }
    }

    /// Answers a request of the server in a separate tokio task, unless too many answers are being sent.
    fn reply(&self, text: String) {
        let Ok(permit) = Arc::clone(&self.0.answers).try_acquire_owned() else { return };
        let request = self.post(text).timeout(NOTIFY);
        tokio::spawn(async move {
            let _ = request.send().await;
            drop(permit);
        });
    }

    /// Sends a message that has no answer, in a separate tokio task.
    fn notify(&self, text: String) {
        let request = self.post(text).timeout(NOTIFY);
        tokio::spawn(async move {
            // A lost notification has no consequence here.
            let _ = request.send().await;
        });
    }

    /// Ends the session.
    pub(super) async fn shutdown(&self) {
        if self.session().id.is_some() {
            let request = self.described(self.0.client.delete(self.0.url.clone())).timeout(NOTIFY);
            let _ = request.send().await;
        }
    }

    /// Sends a request in a separate tokio task, without waiting for its answer.
    pub(super) fn send_unheard(&self, method: &str, name: &str, text: String) {
        if tokio::runtime::Handle::try_current().is_ok() {
            let request = self.routed(method, Route::to(name), text).timeout(NOTIFY);
            tokio::spawn(async move {
                let _ = request.send().await;
            });
        }
    }

    /// Builds a request with the headers for routing.
    fn routed(&self, method: &str, route: Route<'_>, text: String) -> RequestBuilder {
        let request = self.post(text);
        if self.session().version.as_ref().is_some_and(|version| version != STATELESS) {
            return request;
        }
        // The stateless revision requires headers by which proxies route a request without reading its body.
        let request = request.header("mcp-method", method);
        let name = route.name.and_then(|name| HeaderValue::from_str(&encode(name)).ok());
        let request = name.into_iter().fold(request, |request, name| request.header("mcp-name", name));
        route.params.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    fn post(&self, text: String) -> RequestBuilder {
        self.described(self.0.client.post(self.0.url.clone()))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(text)
    }

    fn described(&self, request: RequestBuilder) -> RequestBuilder {
        let session = self.session().clone();
        let mut headers = self.0.headers.clone();
        if let Some(token) = &self.0.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        let mut request = request.headers(headers);
        if let Some(id) = session.id {
            request = request.header("mcp-session-id", id);
        }
        match session.version {
            Some(version) => request.header("mcp-protocol-version", version),
            None => request,
        }
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        self.0.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that has no answer yet.
struct Pending<'a> {
    http: &'a Http,
    id: u64,
    is_open: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // In a session, a notification cancels the request. Without a session, closing the stream cancels it.
        if self.is_open && self.http.session().id.is_some() && tokio::runtime::Handle::try_current().is_ok() {
            self.http.notify(message::cancelled(self.id));
        }
    }
}
