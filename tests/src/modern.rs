//! [`Modern`]: a server of MCP 2026-07-28, made with `rmcp`, whose tools change on request.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, DiscoverResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use tokio::sync::watch;

/// A server with the tools `add`, `change` and `hush`, which change its tools, `die`, which ends its process, and
/// `pay`, which `change` replaces.
#[derive(Debug, Clone)]
pub struct Modern(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tools: Mutex<Vec<Tool>>,
    /// The channel to the subscriptions.
    told: watch::Sender<Told>,
    counts: [AtomicUsize; 3],
    /// Whether it supports only the revisions with a handshake.
    is_old: bool,
    /// The clients that completed a handshake.
    peers: Mutex<Vec<Peer<RoleServer>>>,
}

/// The number of changes of the tools, and of the times when all subscriptions were ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Told {
    changes: usize,
    ends: usize,
}

impl Default for Modern {
    fn default() -> Self {
        Self::of(false)
    }
}

fn tool(name: &'static str, description: &'static str) -> Tool {
    let schema = JsonObject::from_iter([("type".to_owned(), json!("object"))]);
    Tool::new(name, description, Arc::new(schema))
}

impl Modern {
    fn tools(&self) -> MutexGuard<'_, Vec<Tool>> {
        self.0.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server of the revisions with a handshake.
    #[must_use]
    pub fn old() -> Self {
        Self::of(true)
    }

    fn of(is_old: bool) -> Self {
        let tools = ["add", "change", "hush", "die", "pay"].map(|name| tool(name, "A tool.")).into();
        let (tools, told) = (Mutex::new(tools), watch::Sender::default());
        Self(Arc::new(Shared { tools, told, counts: Default::default(), is_old, peers: Mutex::default() }))
    }

    /// Notifies all clients of a change of the tools.
    fn tell(&self) {
        self.0.told.send_modify(|told| told.changes += 1);
        let peers = self.0.peers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for peer in peers {
            tokio::spawn(async move { peer.notify_tool_list_changed().await });
        }
    }

    /// The numbers of `server/discover` requests, of `tools/list` requests, and of opened subscriptions.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        [0, 1, 2].map(|at| self.0.counts[at].load(Ordering::Relaxed))
    }

    fn count(&self, at: usize) {
        self.0.counts[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Executes the tool of this name.
    pub fn act(&self, name: &str) {
        match name {
            "add" => {
                let name = if self.tools().iter().any(|tool| tool.name == "late") { "later" } else { "late" };
                self.tools().push(tool(name, "A tool that was added."));
                self.tell();
            }
            "change" => {
                self.tools()
                    .iter_mut()
                    .filter(|tool| tool.name == "pay")
                    .for_each(|pay| *pay = tool("pay", "Another."));
                self.tell();
            }
            // Adds a tool without a notification, and ends all subscriptions. A client that subscribes again finds the
            // tool.
            "hush" => {
                self.tools().push(tool("quiet", "A tool that was added."));
                self.0.told.send_modify(|told| told.ends += 1);
            }
            "die" => std::process::exit(1),
            _ => {}
        }
    }
}

impl ServerHandler for Modern {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let version = if self.0.is_old { ProtocolVersion::V_2025_11_25 } else { ProtocolVersion::V_2026_07_28 };
        ServerConfig::new(capabilities).with_protocol_version(version)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const NEW: &[ProtocolVersion] = &[ProtocolVersion::V_2026_07_28];
        const OLD: &[ProtocolVersion] = &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25];
        Cow::Borrowed(if self.0.is_old { OLD } else { NEW })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.peers.lock().unwrap_or_else(PoisonError::into_inner).push(context.peer);
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.count(0);
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), self.get_info()))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.count(1);
        Ok(ListToolsResult::with_all_items(self.tools().clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.act(&request.name);
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut told = self.0.told.subscribe();
        let mut known = *told.borrow_and_update();
        // Counted after subscribing: a test that sees the count may change the tools, and this subscription is
        // notified.
        self.count(2);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = told.changed() => {}
            }
            let now = *told.borrow_and_update();
            if now.changes != known.changes {
                let _ = context.sink().notify_tool_list_changed().await;
            }
            if now.ends != known.ends {
                return Ok(());
            }
            known = now;
        }
    }
}
