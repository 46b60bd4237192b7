//! [`RemoteServer`]: the operator's configuration of an MCP server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::capability::Secret;
use crate::error::ParseError;

/// The protocol revision without a handshake, in which each request describes its client.
pub(super) const STATELESS: &str = "2026-07-28";

/// The longest id of a server, in bytes. It leaves room for the names of the server's tools.
const MAX_ID_BYTES: usize = 20;

/// The configuration of an MCP server whose tools an application uses: its id, and its program or address.
///
/// ```
/// use std::time::Duration;
/// use tool_runtime::mcp::source::RemoteServer;
///
/// let files = RemoteServer::command("files", "npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/documents"])
///     .env("PATH", "/usr/local/bin:/usr/bin:/bin")
///     .call_timeout(Duration::from_secs(20));
/// let tickets = RemoteServer::url("tickets", "https://tickets.example/mcp").header("authorization", "Bearer ..");
/// assert_eq!((files.id(), tickets.id()), ("files", "tickets"));
/// ```
#[must_use]
pub struct RemoteServer {
    pub(super) id: String,
    pub(super) reach: Reach,
    pub(super) limits: Limits,
}

/// How to reach a server.
pub(super) enum Reach {
    /// A process to start, with its complete environment.
    Command { program: String, args: Vec<String>, env: BTreeMap<String, String>, folder: Option<PathBuf> },
    /// An endpoint for streamable HTTP, with the headers of each request, and the kind of connection that calls need.
    Url { url: String, headers: Vec<(String, Secret<String>)>, connection: Option<&'static str> },
}

/// The limits for a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The time limit to start and answer the handshake, and again to list all tools.
    pub(super) connect: Duration,
    /// The time limit to answer one call.
    pub(super) call: Duration,
    /// How long a list is valid before it is read again.
    pub(super) refresh: Duration,
    /// The maximum size of one message, in bytes.
    pub(super) message: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(60),
            refresh: Duration::from_secs(60),
            message: 8 * 1024 * 1024,
        }
    }
}

impl RemoteServer {
    /// Configures a server that runs as a process, over its standard input and output.
    ///
    /// `id` is a part of the names of the server's tools, `mcp__<id>__<tool>`. It has at most 20 bytes: lower-case
    /// letters and digits, in words joined by `_` or `-`. The process gets only the environment that [`env`](Self::env)
    /// sets. If that environment has no `PATH`, `program` must be a path, or be in a default folder of the system.
    pub fn command(id: impl Into<String>, program: impl Into<String>) -> Self {
        let (program, args, env) = (program.into(), Vec::new(), BTreeMap::new());
        Self::reached(id.into(), Reach::Command { program, args, env, folder: None })
    }

    /// Configures a server behind a URL, for streamable HTTP. The client does not follow redirects, and ignores the
    /// proxy settings of the environment.
    pub fn url(id: impl Into<String>, url: impl Into<String>) -> Self {
        Self::reached(id.into(), Reach::Url { url: url.into(), headers: Vec::new(), connection: None })
    }

    fn reached(id: String, reach: Reach) -> Self {
        Self { id, reach, limits: Limits::default() }
    }

    /// Adds arguments of the process. Without effect for a server behind a URL.
    pub fn args<S: Into<String>>(mut self, more: impl IntoIterator<Item = S>) -> Self {
        if let Reach::Command { args, .. } = &mut self.reach {
            args.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Adds a variable to the environment of the process, which is empty otherwise. Without effect for a server behind
    /// a URL.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Reach::Command { env, .. } = &mut self.reach {
            env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the folder that the process starts in. Without effect for a server behind a URL.
    pub fn folder(mut self, path: impl Into<PathBuf>) -> Self {
        if let Reach::Command { folder, .. } = &mut self.reach {
            *folder = Some(path.into());
        }
        self
    }

    /// Adds a header to each request, for example `authorization`. Without effect for a process.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Reach::Url { headers, .. } = &mut self.reach {
            headers.push((name.into(), Secret::new(value.into())));
        }
        self
    }

    /// Sends the bearer token of an account with each call. The run maps `kind` to the account
    /// ([`RunOptions::connection`](crate::RunOptions::connection)), and the runner's broker returns its token
    /// ([`ConnectionHandle::bearer_token`](crate::capability::ConnectionHandle::bearer_token)). A request for the list
    /// of tools has only the configured headers. Without effect for a process.
    pub fn connection(mut self, kind: &'static str) -> Self {
        if let Reach::Url { connection, .. } = &mut self.reach {
            *connection = Some(kind);
        }
        self
    }

    /// Sets how long the server may take to start and answer `initialize`, and again to list its tools; 10 seconds by
    /// default. A process that exits at `initialize` is started again, with the same time limit. A command that
    /// downloads its program first, such as `npx -y` or `uvx`, needs a minute the first time.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.limits.connect = timeout;
        self
    }

    /// Sets how long one call may take; a minute by default. The policy's `max_runtime_ms` applies, too.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.limits.call = timeout;
        self
    }

    /// Sets how long the list of tools is valid before a call reads it again; a minute by default.
    pub fn refresh(mut self, age: Duration) -> Self {
        self.limits.refresh = age;
        self
    }

    /// Sets the maximum size of one message of the server, in bytes; 8 MiB by default. A longer message is discarded,
    /// and its call fails as `result_too_large`.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.limits.message = bytes;
        self
    }

    /// Returns the id that the operator gave the server.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Checks the id.
    pub(super) fn check(&self) -> Result<(), ParseError> {
        let word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if self.id.len() <= MAX_ID_BYTES && self.id.split(['_', '-']).all(word) {
            return Ok(());
        }
        Err(ParseError::formatted(
            "server_id",
            format!(
                "`{}` cannot be the id of a server; write lower-case letters and digits in words that `_` or `-` joins, at \
                 most 20 bytes",
                self.id.escape_debug()
            ),
        ))
    }
}

// Arguments, environment and headers can contain secrets.
impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteServer").field("id", &self.id).finish_non_exhaustive()
    }
}
