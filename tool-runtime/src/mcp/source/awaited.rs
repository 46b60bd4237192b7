//! [`Awaited`]: an MCP server in a catalog, before and after its first list of tools.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;

use crate::mcp::source::definition::{Definition, Listed};
use crate::mcp::source::remote::Remote;
use crate::mcp::source::result;
use crate::mcp::source::server::Server;
use crate::mcp::source::slug;
use crate::mcp::source::state::ServerState;
use crate::policy::Unready;
use crate::registration::{DynamicTool, OnAccount, ToolServer};

/// An MCP server whose first list of tools a catalog awaits.
pub(super) struct Awaited {
    server: Server,
    prefix: String,
}

impl Awaited {
    pub(super) fn new(server: Server) -> Self {
        let prefix = format!("mcp__{}__", server.state.id);
        Self { server, prefix }
    }
}

#[async_trait]
impl ToolServer for Awaited {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn tools(&self) -> Option<Vec<DynamicTool>> {
        let state = &self.server.state;
        if !state.is_listed() {
            return None;
        }
        let listed = state.tools();
        let tool = |listed: &Listed| Some(dynamic(&self.server, &listed.raw, listed.admitted.as_ref().ok()?));
        Some(listed.iter().filter_map(|(listed, _)| tool(listed)).collect())
    }

    fn changes(&self) -> &Arc<AtomicU64> {
        &self.server.state.changes
    }

    fn connection(&self) -> Option<&'static str> {
        self.server.state.kind()
    }

    fn unready(&self, name: &str) -> Option<Unready> {
        let ServerState { id, .. } = &*self.server.state;
        if let Some(why) = self.server.state.is_down() {
            return Some(Unready::ServerDown(why));
        }
        if !self.server.state.is_listed() {
            return Some(Unready::ServerDown("it has not answered yet".to_owned()));
        }
        let listed = self.server.state.tools();
        let is_it = |one: &Listed| match &one.admitted {
            Ok(definition) => definition.name == name,
            Err(_) => slug::name(id, &one.raw).is_ok_and(|kept_out| kept_out == name),
        };
        match listed.iter().find(|(one, _)| is_it(one)).map(|(one, _)| &one.admitted) {
            Some(Ok(_)) => None,
            Some(Err(why)) => Some(Unready::KeptOut(why.to_string())),
            None => Some(Unready::Unlisted),
        }
    }

    #[cfg(feature = "mcp-server")]
    async fn ready(&self) -> Result<(), crate::registration::NotReady> {
        self.server.ready(crate::mcp::source::server::Need::Listed).await
    }
}

fn dynamic(server: &Server, raw: &str, definition: &Definition) -> DynamicTool {
    let remote = Arc::new(Remote {
        server: server.clone(),
        raw: raw.to_owned(),
        name: definition.name.clone(),
        pin: definition.pin,
        headers: definition.headers.clone(),
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
