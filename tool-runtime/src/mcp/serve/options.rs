//! [`HttpOptions`]: the requests that a server over HTTP accepts.

use std::time::Duration;

use crate::mcp::serve::auth::Authorization;

/// The limits of a server over HTTP, and its allowed hosts and origins.
///
/// ```
/// use tool_runtime::mcp::serve::HttpOptions;
///
/// let options = HttpOptions::new().host("tools.example.org").max_body(256 * 1024).max_sessions(100);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct HttpOptions {
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) max_body: usize,
    pub(super) max_sessions: usize,
    pub(super) max_sessions_each: usize,
    pub(super) max_connections: usize,
    pub(super) max_connections_each: usize,
    pub(super) body_time: Duration,
    pub(super) authorization: Option<Authorization>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpOptions {
    /// Creates options that allow loopback hosts and no web page.
    /// [`McpServer::bind`](crate::mcp::serve::McpServer::bind) also allows web pages from loopback hosts with its own
    /// port.
    pub const fn new() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            max_body: 1024 * 1024,
            max_sessions: 2048,
            max_sessions_each: 512,
            max_connections: 2048,
            max_connections_each: 1024,
            body_time: Duration::from_secs(20),
            authorization: None,
        }
    }

    /// Allows a host, with or without a port, in the `Host` header, in addition to `localhost`, `127.0.0.1` and `::1`.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Adds an origin whose web pages may call the server: a scheme, a host and a port, such as
    /// `https://app.example.org:443`.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Accepts only requests with a valid bearer token. By default, the server accepts every request that
    /// [`Authenticator`](crate::mcp::serve::Authenticator) admits.
    pub fn authorization(mut self, authorization: Authorization) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Sets the maximum size of a request's body, in bytes; 1 MiB by default.
    pub const fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets how many sessions may be open; 2,048 by default. The server refuses a further one with 503. A session that
    /// is not used for five minutes ends.
    pub const fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets how many sessions one principal of a tenant may have; 512 by default. The server refuses a further one with
    /// 429.
    pub const fn max_sessions_per_principal(mut self, sessions: usize) -> Self {
        self.max_sessions_each = sessions;
        self
    }

    /// Sets how long the body of a request may take after its head; 20 seconds by default. A slower request is refused
    /// with 408, and its connection ends. [`McpServer::bind`](crate::mcp::serve::McpServer::bind) limits the time for
    /// the head to 10 seconds.
    pub const fn body_time(mut self, time: Duration) -> Self {
        self.body_time = time;
        self
    }

    /// Sets how many connections to [`McpServer::bind`](crate::mcp::serve::McpServer::bind) one address may have; 1,024
    /// by default, and 0 means 1. A further connection replaces that connection of the address which has waited longest
    /// for its client. If all of them have requests in progress, the new connection is closed. Behind a proxy, all
    /// clients share one address. All addresses of an IPv6 `/64` network are treated as one address.
    pub const fn max_connections_per_address(mut self, connections: usize) -> Self {
        self.max_connections_each = connections;
        self
    }

    /// Sets how many connections [`McpServer::bind`](crate::mcp::serve::McpServer::bind) accepts at a time; 2,048 by
    /// default, and 0 means 1. A further connection replaces the connection that has waited longest for a request of
    /// its client, or for the rest of a request. If none is waiting, the new connection stays in the queue of the
    /// operating system.
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }
}
