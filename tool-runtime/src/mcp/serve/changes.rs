//! Notifies clients of changes to the tool list: clients with a session, and clients that subscribe
//! (`subscriptions/listen`).
//!
//! The tool list of a party (a principal with its tenant, roles and other rights) changes only if the catalog has tools
//! of MCP servers. The first list of such a server adds its tools, and a tool that the server changes later is denied.

use std::time::Duration;

use rmcp::model::ErrorData;
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::time::sleep;

use crate::mcp::serve::error::full;
use crate::mcp::serve::{McpServer, Served};
use crate::runner::RunOptions;
use crate::tool::ToolName;

/// The interval at which the list is compared with the last one.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watches a party's tool list for changes.
struct Watch<'s> {
    served: &'s Served,
    party: &'s RunOptions,
    changes: u64,
    known: Vec<ToolName>,
}

impl<'s> Watch<'s> {
    fn new(served: &'s Served, party: &'s RunOptions) -> Self {
        // Read the counter before the list, so that a change between the two reads is noticed later.
        let changes = served.runner.catalog().changes();
        let mut watch = Self { served, party, changes, known: Vec::new() };
        watch.known = watch.seen();
        watch
    }

    fn seen(&self) -> Vec<ToolName> {
        let run = self.served.runner.run(self.party.clone());
        run.catalog().specs().map(|spec| spec.name.clone()).collect()
    }

    /// Returns the current list if it differs from the known one.
    fn changed(&mut self) -> Option<Vec<ToolName>> {
        let now = self.served.runner.catalog().changes();
        if std::mem::replace(&mut self.changes, now) == now {
            return None;
        }
        Some(self.seen()).filter(|seen| *seen != self.known)
    }
}

/// Notifies the client of changes to the party's tool list, until the client cancels or the server closes.
pub(super) async fn listen(
    served: &Served,
    party: &RunOptions,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let _room = served.calls.listen().and_then(|room| room.of(party)).map_err(full)?;
    let mut watch = Watch::new(served, party);
    loop {
        tokio::select! {
            () = context.cancelled() => return Ok(()),
            () = served.calls.closing().cancelled() => return Ok(()),
            () = sleep(INTERVAL) => {}
        }
        // A failed send is ignored here: a client that went away cancels `context`.
        if let Some(seen) = watch.changed()
            && context.sink().notify_tool_list_changed().await.is_ok()
        {
            watch.known = seen;
        }
    }
}

/// Notifies a client with a session of changes, until the session ends or the server closes.
pub(super) async fn announce(server: McpServer, party: RunOptions, peer: Peer<RoleServer>) {
    let served = &server.0;
    let mut watch = Watch::new(served, &party);
    while !peer.is_transport_closed() {
        tokio::select! {
            () = served.calls.closing().cancelled() => return,
            () = sleep(INTERVAL) => {}
        }
        if let Some(seen) = watch.changed()
            && peer.notify_tool_list_changed().await.is_ok()
        {
            watch.known = seen;
        }
    }
}
