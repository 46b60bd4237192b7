//! [`ToolSource`]: the MCP servers of an application, as a source of tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::catalog::{CatalogBuilder, SourceServer, ToolCatalog, look_alike};
use crate::error::{BuildError, ParseError};
use crate::mcp::source::awaited::Awaited;
use crate::mcp::source::config::{Reach, RemoteServer};
use crate::mcp::source::hints::Hints;
use crate::mcp::source::http::Http;
use crate::mcp::source::server::{Need, Server};
use crate::mcp::source::state::ServerState;
use crate::mcp::source::tool::McpTool;
use crate::registration::{DynamicTool, ToolServer as _};

/// The MCP servers of an application, as a source of untrusted tools. It is cheap to clone; clones share connections.
///
/// A catalog takes the tools that the servers have listed when it is built ([`CatalogBuilder::source`]). Later it adds
/// the first list of each server that had not answered by then. After that, neither the catalog nor a policy changes: a
/// tool that its server changes is denied until a policy pins the new definition and a new catalog contains it. Each
/// server has its own background task, which connects and lists tools, with growing waits between failed attempts.
/// After the first list, the task reconnects only for a call, a reported change or [`refresh`](Self::refresh). All
/// servers start at the same time. Their tasks end when the last clone and the last catalog are dropped.
///
/// [`connect`](Self::connect) waits for all servers, [`start`](Self::start) for none.
///
/// ```no_run
/// use tool_runtime::mcp::source::{RemoteServer, ToolSource};
/// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let files = RemoteServer::command("files", "/usr/local/bin/server-filesystem").args(["/srv/documents"]);
/// let servers = ToolSource::connect([files]).await?;
/// let policy = ToolPolicy::from_path("policy.toml")?;
/// for tool in servers.tools() {
///     println!("{} {}", tool.state(&policy), tool.raw_name().escape_debug());
/// }
/// let catalog = ToolCatalog::builder().collect().source(&servers).build()?;
/// let runner = ToolRunner::builder(catalog, policy).build()?;
/// # drop(runner);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolSource(Arc<[Server]>);

impl ToolSource {
    /// Connects to all servers at the same time, and waits until each has listed its tools or failed to. A server that
    /// cannot be reached is down, which is not an error: a catalog adds its tools when it answers. Call this inside a
    /// tokio runtime, which runs the tasks of the servers.
    ///
    /// # Errors
    /// An invalid id, an id that two servers have (`-` and `_` are treated as equal), or a URL or header that cannot be
    /// used.
    pub async fn connect(servers: impl IntoIterator<Item = RemoteServer>) -> Result<Self, ParseError> {
        let servers = Self::start(servers)?;
        servers.wait_for_all().await;
        Ok(servers)
    }

    /// Starts to connect to all servers without waiting for them. A catalog that is built in the meantime adds the
    /// tools of each server when the server lists them. Later runs, and sessions of an MCP server, see these tools.
    /// Call this inside a tokio runtime, which runs the tasks of the servers. A graph can name only tools that are
    /// listed when its catalog is built. A late tool that does not satisfy the rules of the policy does not run.
    ///
    /// ```no_run
    /// use tool_runtime::mcp::source::{RemoteServer, ToolSource};
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let servers = ToolSource::start([RemoteServer::command("files", "server-filesystem"), RemoteServer::url("slow", "https://..")])?;
    /// let catalog = ToolCatalog::builder().collect().source(&servers).build()?;
    /// let runner = ToolRunner::builder(catalog, ToolPolicy::from_path("policy.toml")?).build()?;
    /// // Calls of other tools run at once. Before a run that needs the files:
    /// servers.wait_for("files").await;
    /// # drop(runner);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The same as for [`connect`](Self::connect).
    pub fn start(servers: impl IntoIterator<Item = RemoteServer>) -> Result<Self, ParseError> {
        let (mut ids, mut states) = (BTreeSet::new(), Vec::new());
        for server in servers {
            server.check()?;
            if !ids.insert(look_alike(&server.id)) {
                let message = format!(
                    "two servers are called `{}`, or differ from it only in `-` and `_`; rename one",
                    server.id
                );
                return Err(ParseError::formatted("duplicate_server", message));
            }
            states.push(state(server)?);
        }
        let servers = Self(states.into_iter().map(Server::start).collect());
        servers.0.iter().for_each(Server::begin);
        Ok(servers)
    }

    /// Waits until each server has listed its tools, or failed to.
    pub async fn wait_for_all(&self) {
        self.ready(Need::Listed).await;
    }

    /// Waits until the server with this id has listed its tools or failed to. The wait is bounded by its
    /// [`connect_timeout`](RemoteServer::connect_timeout), which applies to the handshake and to the list, and once
    /// more if a process exits at the handshake and is started again. Returns whether the server has listed its tools;
    /// `false` if no server has the id.
    pub async fn wait_for(&self, server: &str) -> bool {
        match self.0.iter().find(|one| *one.state.id == *server) {
            Some(server) => server.ready(Need::Listed).await.is_ok(),
            None => false,
        }
    }

    /// Reads the lists of all servers again, and reconnects to a server that is down if its wait is over. Policies do
    /// not change, and a catalog changes only if it still waits for the first list of a server.
    pub async fn refresh(&self) {
        self.ready(Need::Now).await;
    }

    async fn ready(&self, need: Need) {
        let mut waiting = tokio::task::JoinSet::new();
        for server in self.0.iter() {
            let server = server.clone();
            waiting.spawn(async move {
                // `notes` reports the failure.
                let _ = server.ready(need).await;
            });
        }
        while waiting.join_next().await.is_some() {}
    }

    /// Returns all tools that the servers list, including rejected ones, in the order of the servers and their lists.
    #[must_use]
    pub fn tools(&self) -> Vec<McpTool> {
        let of = |server: &Server| {
            let id = Arc::clone(&server.state.id);
            let tools = server.state.tools().into_iter();
            tools.map(move |(listed, has_moved)| McpTool { server: Arc::clone(&id), listed, has_moved })
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Returns notes for operators by server id: why a server is down, or why its list was not read to the end.
    #[must_use]
    pub fn notes(&self) -> BTreeMap<String, String> {
        self.0.iter().filter_map(|server| Some((server.state.id.to_string(), server.state.note()?))).collect()
    }

    /// Forgets the earlier definitions of a tool, by its name in this library, so that the tool is no longer `drifted`
    /// because its server switched between definitions or changed them too often. Call this after a person has reviewed
    /// the tool. The policy must still pin the definition that the server publishes now. Returns whether a server lists
    /// the tool.
    #[expect(clippy::must_use_candidate, reason = "a caller may not need the result")]
    pub fn review(&self, name: &str) -> bool {
        self.0.iter().any(|server| server.state.review(name))
    }

    /// Closes all connections gracefully: a process has two seconds to exit, and is then killed with its group. A
    /// connection that a call still uses ends with that call.
    pub async fn shutdown(self) {
        let mut waiting = tokio::task::JoinSet::new();
        for server in self.0.iter() {
            let server = server.clone();
            waiting.spawn(async move { server.shutdown().await });
        }
        while waiting.join_next().await.is_some() {}
    }

    /// Returns the listed tools and all servers, for a catalog.
    pub(crate) fn gathered(&self) -> (Vec<DynamicTool>, Vec<SourceServer>) {
        let (mut tools, mut servers) = (Vec::new(), Vec::new());
        for server in self.0.iter() {
            let awaited = Awaited::new(server.clone());
            let listed = awaited.tools();
            server.state.is_awaited.fetch_or(listed.is_none(), Ordering::Relaxed);
            servers.push(SourceServer { server: Arc::new(awaited), is_listed: listed.is_some() });
            tools.extend(listed.into_iter().flatten());
        }
        (tools, servers)
    }
}

fn state(server: RemoteServer) -> Result<ServerState, ParseError> {
    let hints = Arc::<Hints>::default();
    let RemoteServer { id, reach, limits } = server;
    let http = match &reach {
        Reach::Url { url, headers, .. } => {
            let http = Http::new(url, headers, limits.message, limits.connect, Arc::clone(&hints));
            Some(http.map_err(|message| ParseError::formatted("server_url", format!("the server `{id}`: {message}")))?)
        }
        Reach::Command { .. } => None,
    };
    Ok(ServerState::new(id.into(), reach, http, limits, hints))
}

impl ToolCatalog {
    /// Adds the tools of these servers to a newly built catalog, as [`CatalogBuilder::source`] does.
    ///
    /// # Errors
    /// The name of a tool, or the prefix of a server, is already taken.
    pub fn with_source(self, servers: &ToolSource) -> Result<Self, BuildError> {
        let (tools, servers) = servers.gathered();
        self.extended(tools, &servers)
    }
}

impl CatalogBuilder {
    /// Adds the tools that these servers list, except rejected ones. The first list of a server that has not answered
    /// yet is added when it arrives. All of these tools are denied until the policy pins them.
    pub fn source(self, servers: &ToolSource) -> Self {
        let (tools, servers) = servers.gathered();
        let builder = tools.into_iter().fold(self, Self::dynamic);
        servers.into_iter().fold(builder, Self::server)
    }
}

impl fmt::Debug for ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|server| &server.state.id)).finish()
    }
}
