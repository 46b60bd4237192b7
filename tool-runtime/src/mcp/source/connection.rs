//! [`Connection`]: an open connection after its handshake, in the revision that the server speaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::mcp::source::config::{Limits, Reach};
use crate::mcp::source::error::Failure;
use crate::mcp::source::http::Http;
use crate::mcp::source::message;
use crate::mcp::source::stdio::{Program, Stdio};
use crate::mcp::source::tasks;

/// Revisions with a handshake, the preferred one first.
const WITH_HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The revision without one: each request says who asks.
const STATELESS: &str = "2026-07-28";

/// An open connection.
pub(super) struct Connection {
    wire: Wire,
    next: AtomicU64,
    is_stateless: bool,
}

enum Wire {
    Stdio(Box<Stdio>),
    Http(Http),
}

impl Connection {
    /// Reaches a server and agrees on a revision with it, within the time to connect.
    pub(super) async fn open(
        server: &Arc<str>,
        reach: &Reach,
        http: Option<&Http>,
        limits: &Limits,
        changed: &Arc<Notify>,
    ) -> Result<Self, Failure> {
        let wire = match (reach, http) {
            (Reach::Command { program, args, env, folder }, _) => {
                let program = Program { path: program, args, env, folder: folder.as_ref() };
                let stdio = Stdio::start(Arc::clone(server), &program, limits.message, Arc::clone(changed))?;
                Wire::Stdio(Box::new(stdio))
            }
            (Reach::Url { .. }, Some(http)) => {
                http.forget();
                Wire::Http(http.clone())
            }
            (Reach::Url { .. }, None) => return Err(Failure::NotSent("the URL cannot be used".to_owned())),
        };
        Self::agreed(wire, limits).await
    }

    /// Agrees on a revision with a server behind a URL, for one account.
    pub(super) async fn to_account(http: Http, limits: &Limits) -> Result<Self, Failure> {
        Self::agreed(Wire::Http(http), limits).await
    }

    async fn agreed(wire: Wire, limits: &Limits) -> Result<Self, Failure> {
        let mut connection = Self { wire, next: AtomicU64::new(1), is_stateless: false };
        match tokio::time::timeout(limits.connect, connection.shake_hands()).await {
            Ok(agreed) => agreed.map(|()| connection),
            Err(_) => Err(connection.silence()),
        }
    }

    /// Why no answer came.
    fn silence(&self) -> Failure {
        match &self.wire {
            Wire::Stdio(stdio) if stdio.is_no_server() => Failure::NotMcp,
            _ => Failure::Timeout,
        }
    }

    async fn shake_hands(&mut self) -> Result<(), Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Initialized {
            protocol_version: String,
        }
        let params = json!({"protocolVersion": WITH_HANDSHAKE[0], "capabilities": offers(), "clientInfo": client()});
        match self.send("initialize", None, &params).await {
            Ok(result) => {
                let initialized: Initialized = serde_json::from_str(&result).map_err(|_| Failure::Unreadable)?;
                let agreed = WITH_HANDSHAKE.into_iter().find(|version| *version == initialized.protocol_version);
                let version = agreed.ok_or(Failure::Protocol("the server speaks no revision that is spoken here"))?;
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
            // A server of the revision without a handshake does not know the request.
            Err(Failure::Refused { .. } | Failure::Status(400 | 405 | 422)) => self.discover().await,
            Err(failure) => Err(failure),
        }
    }

    async fn discover(&mut self) -> Result<(), Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Discovered {
            supported_versions: Vec<String>,
        }
        self.is_stateless = true;
        if let Wire::Http(http) = &self.wire {
            http.speak(STATELESS);
        }
        let result = self.send("server/discover", None, &self.described(json!({}))).await?;
        let discovered: Discovered = serde_json::from_str(&result).map_err(|_| Failure::Unreadable)?;
        if discovered.supported_versions.iter().any(|version| version == STATELESS) {
            return Ok(());
        }
        Err(Failure::Protocol("the server speaks no revision that is spoken here"))
    }

    /// Sends a request and waits for its result, as the server wrote it.
    pub(super) async fn request(
        &self,
        method: &str,
        name: Option<&str>,
        params: Value,
        timeout: Duration,
    ) -> Result<Box<str>, Failure> {
        let params = self.described(params);
        match tokio::time::timeout(timeout, self.send(method, name, &params)).await {
            Ok(result) => result,
            Err(_) => Err(Failure::Timeout),
        }
    }

    async fn send(&self, method: &str, name: Option<&str>, params: &Value) -> Result<Box<str>, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let text = message::request(id, method, params);
        match &self.wire {
            Wire::Stdio(stdio) => stdio.request(id, text).await,
            Wire::Http(http) => http.request(id, method, name, text).await,
        }
    }

    /// Sends a request whose answer nobody waits for.
    pub(super) fn send_unheard(&self, method: &'static str, name: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let text = message::request(id, method, &self.described(params));
        match &self.wire {
            Wire::Stdio(stdio) => stdio.notify(text),
            Wire::Http(http) => http.send_unheard(method, name, text),
        }
    }

    /// Parameters that say who asks, where no handshake did.
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

    /// Whether requests leave this machine's process over HTTP.
    pub(super) const fn is_http(&self) -> bool {
        matches!(self.wire, Wire::Http(_))
    }

    /// Ends the connection in order.
    pub(super) async fn shutdown(self) {
        match self.wire {
            Wire::Stdio(stdio) => stdio.shutdown().await,
            Wire::Http(http) => http.shutdown().await,
        }
    }
}

/// What a server may count on: it may make a task of a call, and ask for nothing.
fn offers() -> Value {
    json!({"extensions": {tasks::EXTENSION: {}}})
}

fn client() -> Value {
    json!({"name": "tool-runtime", "version": env!("CARGO_PKG_VERSION")})
}
