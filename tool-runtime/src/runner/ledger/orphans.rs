//! Closes calls that a graph (an agent or a script that runs as a tool) leaves open when its own call ends: waiting
//! calls that no decision can reach any more, and calls without a recorded end.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::call::{CallId, PendingGraph, ToolContext};
use crate::contain::discard;
use crate::runner::gate::graph::{self, SEPARATOR};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::{Run, RunOptions};
use crate::store::{Key, LedgerEntry, StoreError, ledger};
use crate::tool::{self, graph_of, is_graph};

/// A guard for the run of a graph. If it is dropped before [`close`](Self::close), all open calls of that run are
/// closed.
pub(in crate::runner) struct Orphans {
    run: Run,
    call: CallId,
    tool: String,
    child: Arc<str>,
    /// Whether a drop of the guard has to close the calls.
    is_cut: bool,
}

impl Orphans {
    /// Creates the guard before the graph works in this run.
    pub(in crate::runner) fn of(run: &Run, context: &ToolContext, child: Arc<str>) -> Self {
        let (run, call, tool) = (run.clone(), context.call_id().clone(), context.tool().to_string());
        Self { run, call, tool, child, is_cut: true }
    }

    /// Creates the guard for a graph that waited. A drop of it closes nothing.
    pub(in crate::runner) fn after(run: &Run, call: &CallId, tool: &str, child: Arc<str>) -> Self {
        Self { run: run.clone(), call: call.clone(), tool: tool.to_owned(), child, is_cut: false }
    }

    /// Creates the guard for a graph's call that was closed as `outcome_unknown`. `None` if the tool is not a graph.
    pub(in crate::runner) fn of_closed(run: &Run, key: &Key, entry: &LedgerEntry) -> Option<Self> {
        let record = &entry.record;
        let derived = || graph::run_id(&run.shared().digests, key.id()).into();
        let child = || entry.graph.clone().unwrap_or_else(derived);
        is_graph(&record.name).then(|| Self::after(run, &record.tool_call_id, &record.name, child()))
    }

    /// Closes the open calls of the graph's run, except the calls in `kept`, which wait together with the graph.
    pub(in crate::runner) async fn close(mut self, kept: &[CallId]) {
        self.is_cut = false;
        Box::pin(close(&self, kept)).await;
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        if !self.is_cut {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let left = Self::after(&self.run, &self.call, &self.tool, Arc::clone(&self.child));
        runtime.spawn(left.close(&[]));
    }
}

/// Closes the calls of a graph that waited and will not continue.
pub(in crate::runner) async fn leave(run: &Run, call: &CallId, graph: Option<Box<PendingGraph>>) {
    if let Some(graph) = graph {
        let name = graph.path.split(SEPARATOR).next().unwrap_or_default();
        Orphans::after(run, call, &tool::graph(name), Arc::clone(&graph.run_id)).close(&[]).await;
    }
}

/// Closes the waiting and the begun calls of a graph. Failures of the store are reported to operators.
async fn close(left: &Orphans, kept: &[CallId]) {
    let Orphans { run, call, tool, child, .. } = left;
    let name = graph_of(tool).unwrap_or(tool);
    let options = RunOptions { parent: Some(run.clone()), ..run.options().clone() };
    let options = options.run_id(Arc::clone(child)).events(graph::forward_events(run, call, name));
    let child = Run::start(Arc::clone(run.shared()), run.policy().clone(), options);
    match LedgerClient(&child).all_waiting().await {
        Ok(waiting) => {
            for waiting in waiting.iter().filter(|waiting| !kept.contains(&waiting.call.call_id)) {
                let _ = Box::pin(child.abandon(waiting.call.call_id.as_str())).await;
            }
        }
        Err(error) => discard(child.store_unread(error)),
    }
    if let Err(error) = close_begun(&child).await {
        discard(child.store_unread(error));
    }
}

/// Closes calls of the graph that began. The call of the graph has ended, so no process may continue them.
async fn close_begun(child: &Run) -> Result<(), StoreError> {
    let client = LedgerClient(child);
    let mut search = client.begun_calls();
    while let Some(page) = search.next(&child.shared().store).await? {
        for call in page.into_iter().filter_map(|listed| client.open_call(listed, |_| true)) {
            // If one call cannot be closed, the next calls are closed nevertheless.
            search.note(client.end(&call, ledger::close_orphan).await.map(drop));
        }
    }
    search.end()
}
