//! [`Connection`]: an open connection to a server, in the protocol revision on which both sides agreed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::mcp::source::config::{Limits, STATELESS};
use crate::mcp::source::diagnostics::Diagnostics;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::hints::Hints;
use crate::mcp::source::http::{Http, Route};
use crate::mcp::source::message;
use crate::mcp::source::stdio::{Program, Stdio};
use crate::mcp::source::tasks;

/// Revisions with a handshake, the preferred one first.
const WITH_HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// An open connection.
pub(super) struct Connection {
    wire: Wire,
    next: AtomicU64,
    is_stateless: bool,
    /// Whether the server declares notifications about changes of its tools.
    announces: bool,
}

enum Wire {
    Stdio(Box<Stdio>),
    Http(Http),
}

impl Connection {
    /// Starts the program of a server and agrees on a revision with it. The connect timeout applies to each of at most
    /// two starts.
    pub(super) async fn to_program(
        id: &Arc<str>,
        program: &Program<'_>,
        limits: &Limits,
        hints: &Arc<Hints>,
        diagnostics: &Arc<Diagnostics>,
    ) -> Result<Self, RequestError> {
        let start = || Stdio::start(Arc::clone(id), program, limits.message, Arc::clone(hints), diagnostics);
        match Self::agreed(Wire::Stdio(Box::new(start()?)), limits, true).await {
            // The process exited because its revision has no handshake, so start it again without one.
            Err(RequestError::NoHandshake) => Self::agreed(Wire::Stdio(Box::new(start()?)), limits, false).await,
            agreed => agreed,
        }
    }

    /// Agrees on a revision with a server behind a URL, within the connect timeout.
    pub(super) async fn to_url(http: Http, limits: &Limits) -> Result<Self, RequestError> {
        Self::agreed(Wire::Http(http), limits, true).await
    }

    async fn agreed(wire: Wire, limits: &Limits, with_handshake: bool) -> Result<Self, RequestError> {
        let mut connection = Self { wire, next: AtomicU64::new(1), is_stateless: false, announces: false };
        let agreeing =
            async { if with_handshake { connection.shake_hands().await } else { connection.discover().await } };
        match tokio::time::timeout(limits.connect, agreeing).await {
            Ok(agreed) => agreed.map(|()| connection),
            Err(_) => Err(connection.silence()),
        }
    }

    /// Returns the error for a handshake that the server did not answer in time.
    fn silence(&self) -> RequestError {
        match &self.wire {
            Wire::Stdio(stdio) if stdio.is_no_server() => RequestError::NotMcp,
            _ => RequestError::Timeout,
        }
    }

    async fn shake_hands(&mut self) -> Result<(), RequestError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Initialized<'a> {
            protocol_version: String,
            #[serde(borrow)]
            capabilities: Option<&'a RawValue>,
        }
        let params = json!({"protocolVersion": WITH_HANDSHAKE[0], "capabilities": offers(), "clientInfo": client()});
        match self.send("initialize", Route::default(), &params).await {
            Ok(result) => {
                let initialized: Initialized<'_> =
                    serde_json::from_str(&result).map_err(|_| RequestError::Unreadable)?;
                if initialized.protocol_version == STATELESS {
                    return self.confirm(initialized.capabilities.map_or("{}", RawValue::get)).await;
                }
                let agreed = WITH_HANDSHAKE.into_iter().find(|version| *version == initialized.protocol_version);
                let version =
                    agreed.ok_or(RequestError::Protocol("the server and this client share no protocol revision"))?;
                self.announces = initialized.capabilities.is_some_and(|offered| announces(offered.get()));
                let text = message::notification("notifications/initialized", &json!({}));
                match &self.wire {
                    Wire::Stdio(stdio) => stdio.notify(text),
                    Wire::Http(http) => {
                        http.speak(version);
                        http.tell(text).await?;
                    }
                }
                Ok(())
            }
            // A server of the revision without a handshake rejects the unknown request.
            Err(first @ (RequestError::Refused { .. } | RequestError::Status(400 | 405 | 422, _))) => {
                match self.discover().await {
                    // The server rejects both requests; its first error names the cause.
                    Err(RequestError::Refused { .. }) if matches!(first, RequestError::Refused { .. }) => Err(first),
                    Err(RequestError::Closed | RequestError::NotSent(_)) if matches!(self.wire, Wire::Stdio(_)) => {
                        Err(RequestError::NoHandshake)
                    }
                    discovered => discovered,
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Continues with a server that answered `initialize` with the revision that has no handshake. If the server does
    /// not support `server/discover`, its answer to `initialize` decides, and the session that it began is used.
    async fn confirm(&mut self, capabilities: &str) -> Result<(), RequestError> {
        self.is_stateless = true;
        self.announces = announces(capabilities);
        if let Wire::Http(http) = &self.wire {
            http.speak(STATELESS);
        }
        match self.send("server/discover", Route::default(), &self.described(json!({}))).await {
            Ok(result) => {
                // A server that supports `server/discover` has no sessions.
                if let Wire::Http(http) = &self.wire {
                    http.forget();
                    http.speak(STATELESS);
                }
                self.discovered(&result)
            }
            Err(RequestError::Refused { .. } | RequestError::Status(400 | 404 | 405 | 422, _)) => {
                let text = message::notification("notifications/initialized", &json!({}));
                match &self.wire {
                    Wire::Stdio(stdio) => stdio.notify(text),
                    Wire::Http(http) => http.tell(text).await?,
                }
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn discover(&mut self) -> Result<(), RequestError> {
        self.is_stateless = true;
        if let Wire::Http(http) = &self.wire {
            // Drop a session that the rejected handshake may have begun.
            http.forget();
            http.speak(STATELESS);
        }
        let result = self.send("server/discover", Route::default(), &self.described(json!({}))).await?;
        self.discovered(&result)
    }

    fn discovered(&mut self, result: &str) -> Result<(), RequestError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Discovered<'a> {
            supported_versions: Vec<String>,
            #[serde(borrow)]
            capabilities: Option<&'a RawValue>,
        }
        let discovered: Discovered<'_> = serde_json::from_str(result).map_err(|_| RequestError::Unreadable)?;
        if discovered.supported_versions.iter().any(|version| version == STATELESS) {
            self.announces = discovered.capabilities.is_some_and(|offered| announces(offered.get()));
            return Ok(());
        }
        Err(RequestError::Protocol("the server and this client share no protocol revision"))
    }

    /// Sends a request and returns its result as the server wrote it.
    pub(super) async fn request(
        &self,
        method: &str,
        route: Route<'_>,
        params: Value,
        timeout: Duration,
    ) -> Result<Box<str>, RequestError> {
        let params = self.described(params);
        match tokio::time::timeout(timeout, self.send(method, route, &params)).await {
            Ok(result) => result,
            Err(_) => Err(RequestError::Timeout),
        }
    }

    /// Whether the server reports changes of its tools only over a subscription. A process whose revision has a
    /// handshake reports them without one.
    pub(super) const fn has_subscriptions(&self) -> bool {
        self.announces && (self.is_stateless || self.is_http())
    }

    /// Subscribes to changes of the tools. Returns the receiver of the acknowledgement, which is `true` if the server
    /// will report changes, and the request, which ends with the subscription.
    pub(super) fn listen<'a>(
        &'a self,
        hints: &Hints,
    ) -> (oneshot::Receiver<bool>, impl Future<Output = Result<Box<str>, RequestError>> + use<'a>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let acknowledged = hints.subscribe(id);
        let params = self.described(json!({"notifications": {"toolsListChanged": true}}));
        let lasts = async move {
            match &self.wire {
                Wire::Http(http) if !self.is_stateless => http.listen(id).await,
                _ => self.send_as(id, "subscriptions/listen", Route::default(), &params).await,
            }
        };
        (acknowledged, lasts)
    }

    async fn send(&self, method: &str, route: Route<'_>, params: &Value) -> Result<Box<str>, RequestError> {
        self.send_as(self.next.fetch_add(1, Ordering::Relaxed), method, route, params).await
    }

    async fn send_as(&self, id: u64, method: &str, route: Route<'_>, params: &Value) -> Result<Box<str>, RequestError> {
        let text = message::request(id, method, params);
        match &self.wire {
            Wire::Stdio(stdio) => stdio.request(id, text).await,
            Wire::Http(http) => http.request(id, method, route, text).await,
        }
    }

    /// Sends a request without waiting for its answer.
    pub(super) fn send_unheard(&self, method: &'static str, name: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let text = message::request(id, method, &self.described(params));
        match &self.wire {
            Wire::Stdio(stdio) => stdio.notify(text),
            Wire::Http(http) => http.send_unheard(method, name, text),
        }
    }

    /// Adds the description of this client to parameters, if there was no handshake.
    fn described(&self, mut params: Value) -> Value {
        if let (true, Some(members)) = (self.is_stateless, params.as_object_mut()) {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": client(),
                "io.modelcontextprotocol/clientCapabilities": offers(),
            });
            members.insert("_meta".to_owned(), meta);
        }
        params
    }

    /// Whether the server ended the connection.
    pub(super) fn is_closed(&self) -> bool {
        match &self.wire {
            Wire::Stdio(stdio) => stdio.is_closed(),
            Wire::Http(http) => http.is_closed(),
        }
    }

    /// Whether the client sends requests over HTTP.
    pub(super) const fn is_http(&self) -> bool {
        matches!(self.wire, Wire::Http(_))
    }

    /// Closes the connection gracefully.
    pub(super) async fn shutdown(self) {
        match self.wire {
            Wire::Stdio(stdio) => stdio.shutdown().await,
            Wire::Http(http) => http.shutdown().await,
        }
    }
}

/// Whether a server declares notifications about changes of its tools.
fn announces(capabilities: &str) -> bool {
    #[derive(Default, Deserialize)]
    struct Offered {
        tools: Option<Tools>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Tools {
        list_changed: bool,
    }
    let offered: Offered = serde_json::from_str(capabilities).unwrap_or_default();
    offered.tools.is_some_and(|tools| tools.list_changed)
}

/// Returns the capabilities of this client: the server may turn a call into a task, but may send no requests.
fn offers() -> Value {
    json!({"extensions": {tasks::EXTENSION: {}}})
}

fn client() -> Value {
    json!({"name": "tool-runtime", "version": env!("CARGO_PKG_VERSION")})
}
