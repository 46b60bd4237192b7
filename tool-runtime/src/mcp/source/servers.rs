//! [`ToolSource`]: the servers of an application, as a source of tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::catalog::{CatalogBuilder, look_alike};
use crate::mcp::source::config::{Reach, RemoteServer};
use crate::mcp::source::definition::Definition;
use crate::mcp::source::error::SourceError;
use crate::mcp::source::hints::Hints;
use crate::mcp::source::http::Http;
use crate::mcp::source::remote::Remote;
use crate::mcp::source::result;
use crate::mcp::source::server::Server;
use crate::mcp::source::state::State;
use crate::mcp::source::tool::McpTool;
use crate::registration::{DynamicTool, OnAccount};

/// The servers of an application, as a source of tools that nobody trusts. Cheap to clone; clones share connections.
///
/// A catalog takes the tools that the servers list when it is built ([`CatalogBuilder::source`]). It does not change,
/// and neither does a policy: what a server changes later is denied until a policy pins it and a catalog has it. Each
/// server has a task of its own, which connects, lists, and reconnects with growing waits; it ends with the last clone
/// and the last catalog.
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
///     println!("{} {}", tool.state(&policy).as_str(), tool.raw_name().escape_debug());
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
    /// Connects to all servers and lists their tools. One that cannot be reached is down, which is no error: its tools
    /// come once it answers. Has to be called inside a tokio runtime, which runs the tasks of the servers.
    ///
    /// # Errors
    /// An id that is not one or that two servers have, or a URL or header that cannot be used.
    pub async fn connect(servers: impl IntoIterator<Item = RemoteServer>) -> Result<Self, SourceError> {
        let (mut ids, mut states) = (BTreeSet::new(), Vec::new());
        for server in servers {
            server.check()?;
            if !ids.insert(look_alike(&server.id)) {
                return Err(SourceError::DuplicateServer(server.id));
            }
            states.push(state(server)?);
        }
        let servers = Self(states.into_iter().map(Server::start).collect());
        servers.refresh().await;
        Ok(servers)
    }

    /// Lists the tools of all servers again, and connects to those that are down if their time has come. Catalogs and
    /// policies stay as they are.
    pub async fn refresh(&self) {
        let mut waiting = tokio::task::JoinSet::new();
        for server in self.0.iter() {
            let server = server.clone();
            waiting.spawn(async move {
                // What goes wrong is in `notes`.
                let _ = server.ready(true).await;
            });
        }
        while waiting.join_next().await.is_some() {}
    }

    /// All tools that the servers list, those that are kept out included, in the order of the servers and their lists.
    #[must_use]
    pub fn tools(&self) -> Vec<McpTool> {
        let of = |server: &Server| {
            let id = Arc::clone(&server.state.id);
            let tools = server.state.tools().into_iter();
            tools.map(move |(listed, has_moved)| McpTool { server: Arc::clone(&id), listed, has_moved })
        };
        self.0.iter().flat_map(of).collect()
    }

    /// What operators should know of servers, by their ids: why one is down, or why its list was not read to the end.
    #[must_use]
    pub fn notes(&self) -> BTreeMap<String, String> {
        self.0.iter().filter_map(|server| Some((server.state.id.to_string(), server.state.note()?))).collect()
    }

    /// Ends what is held against a tool because its server switched between definitions, once somebody looked at it.
    /// The definition that the server publishes now still has to be the one that the policy pins. Returns whether a
    /// server lists the tool.
    #[expect(clippy::must_use_candidate, reason = "it is called for what it does")]
    pub fn review(&self, name: &str) -> bool {
        self.0.iter().any(|server| server.state.review(name))
    }

    /// Ends all connections in order: a process gets two seconds to end by itself, and then ends with its group.
    pub async fn shutdown(self) {
        let mut waiting = tokio::task::JoinSet::new();
        for server in self.0.iter() {
            let server = server.clone();
            waiting.spawn(async move { server.shutdown().await });
        }
        while waiting.join_next().await.is_some() {}
    }

    /// The tools that a catalog takes.
    pub(crate) fn dynamic(&self) -> Vec<DynamicTool> {
        let of = |server: &Server| {
            let listed = server.state.tools();
            let tools = listed
                .iter()
                .filter_map(|(listed, _)| Some(dynamic(server, &listed.raw, listed.admitted.as_ref().ok()?)));
            tools.collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }
}

fn state(server: RemoteServer) -> Result<State, SourceError> {
    let hints = Arc::<Hints>::default();
    let RemoteServer { id, reach, limits } = server;
    let http = match &reach {
        Reach::Url { url, headers, .. } => {
            let http = Http::new(url, headers, limits.message, limits.connect, Arc::clone(&hints));
            Some(http.map_err(|message| SourceError::Url { server: id.clone(), message })?)
        }
        Reach::Command { .. } => None,
    };
    Ok(State::new(id.into(), reach, http, limits, hints))
}

fn dynamic(server: &Server, raw: &str, definition: &Definition) -> DynamicTool {
    let remote = Arc::new(Remote {
        server: server.clone(),
        raw: raw.to_owned(),
        name: definition.name.clone(),
        pin: definition.pin,
        is_structured: definition.output.is_some(),
    });
    let id = &*server.state.id;
    let slug =
        definition.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map_or(raw, |(_, slug)| slug);
    let (description, input) = (definition.description.clone(), definition.input.clone());
    let tool = DynamicTool::discovered(id, slug, description, input, Arc::clone(&remote) as _)
        .output_schema(definition.output.clone().unwrap_or_else(result::plain_schema))
        .published(definition.pin, Arc::clone(&remote) as _);
    let tool = match server.state.kind() {
        Some(kind) => tool.on_account(OnAccount { kind, handler: remote }),
        None => tool,
    };
    match &definition.title {
        Some(title) => tool.title(title),
        None => tool,
    }
}

impl CatalogBuilder {
    /// Takes the tools that these servers list now, but for those that are kept out. All of them are denied until the
    /// policy pins them.
    pub fn source(self, servers: &ToolSource) -> Self {
        servers.dynamic().into_iter().fold(self, Self::dynamic)
    }
}

impl fmt::Debug for ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|server| &server.state.id)).finish()
    }
}
