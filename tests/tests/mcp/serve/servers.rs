//! Two servers over one store: both find the calls of a run, each only for the party of the run.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use rmcp::service::ServiceError;
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tool_runtime::mcp::serve::{McpServer, Peer};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{MemoryStore, PendingCall, RecordFilter, Store};
use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::serve::held::{
    NOBODY, by_session, letter, one_waiting, piped, post, posting, read, send, sent, waiting, waits,
};
use crate::serve::rig::{request, text};
use crate::serve::tasks;

/// A tool that is at work, and what lets it end.
static WORKS: Notify = Notify::const_new();
static ENDS: Semaphore = Semaphore::const_new(0);
static RUNS: LazyLock<Mutex<usize>> = LazyLock::new(Mutex::default);

/// Prints slowly.
#[tool(name = "press__print", effect = external_side_effect, redact = ["$"])]
async fn print() -> Result<String, ToolError> {
    *RUNS.lock().unwrap() += 1;
    WORKS.notify_one();
    drop(ENDS.acquire().await);
    Ok("printed".to_owned())
}

fn server(store: &Arc<MemoryStore>) -> McpServer {
    let catalog = ToolCatalog::builder().tool::<send>().tool::<read>().tool::<print>().build().unwrap();
    let policy = "allowed_tools = [\"letters__send\", \"notes__read\", \"press__print\"]\n\
                  require_approval_for_tools = [\"letters__send\", \"press__print\"]\n";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
    let party = |peer: &Peer<'_>| by_session(peer).or_else(|| Some(RunOptions::new().principal("ada").tenant("acme")));
    McpServer::builder(runner.store(Arc::clone(store)).build().unwrap(), party).build().unwrap()
}

async fn is_found(client: &tasks::Client, call: &PendingCall) -> bool {
    match tasks::get(client, &format!("{}.{}", call.run_id, call.call_id)).await {
        Ok(_) => true,
        Err(ServiceError::McpError(error)) if error.code.0 == -32602 => false,
        Err(error) => panic!("{error}"),
    }
}

/// A call waits at one server. A session with fewer tools asks the other for it first.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_from_the_store_is_its_party_s() {
    let store = Arc::<MemoryStore>::default();
    let (here, there) = (server(&store), server(&store));
    let first = posting(&here, "first", NOBODY).await;
    waits(&letter(&first, "of its party").await.unwrap());
    let call = one_waiting(&*store).await;
    let (narrow, tasks) = (tasks::over_http(&there, "narrow").await, tasks::over_http(&there, "second").await);
    assert!(!is_found(&narrow, &call).await, "at a server that does not have it yet");
    assert!(is_found(&tasks, &call).await);
    assert!(!is_found(&narrow, &call).await && is_found(&tasks, &call).await);
    let second = posting(&there, "second", NOBODY).await;
    waits(&letter(&second, "of its party").await.unwrap());
    assert_eq!(one_waiting(&*store).await.call_id, call.call_id, "one call, one question");
    post(&store, &call, ApprovalDecision::Approve).await;
    assert_eq!(text(&letter(&second, "of its party").await.unwrap()), "sent at 1");
    assert_eq!(sent("of its party"), 1);
}

/// The other server has read the run before a later call of it came.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_call_of_a_run_is_found_at_each_server() {
    let store = Arc::<MemoryStore>::default();
    let (here, there) = (server(&store), server(&store));
    let (first, second) = (piped(&here, NOBODY).await, posting(&there, "second", NOBODY).await);
    waits(&letter(&first, "of both").await.unwrap());
    waits(&letter(&second, "of both").await.unwrap());
    let early = one_waiting(&*store).await;
    let print = || request("press__print", json!({}));
    waits(&first.call_tool(print()).await.unwrap());
    let late = waiting(&*store).await.into_iter().find(|call| call.call_id != early.call_id).unwrap();
    assert_eq!(late.run_id, early.run_id);
    assert!(is_found(&tasks::over_http(&there, "second").await, &late).await);
    post(&store, &late, ApprovalDecision::Approve).await;
    let printed = tokio::spawn(async move { first.call_tool(print()).await });
    WORKS.notified().await;
    // It runs at the first server, so the second one waits for its end.
    let told = Arc::clone(&second.service().told);
    let again = tokio::spawn(async move { second.call_tool(print()).await });
    while told.lock().unwrap().is_empty() && !again.is_finished() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ENDS.add_permits(1);
    let (printed, again) = (printed.await.unwrap().unwrap(), again.await.unwrap().unwrap());
    assert_eq!((text(&printed), text(&again), *RUNS.lock().unwrap()), ("printed", "printed", 1));
    let calls = store.calls(&RecordFilter::call(Arc::clone(&late.run_id), late.call_id.clone())).await.unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(waiting(&*store).await.len(), 1, "no other call waits");
}

/// The server of a call is gone, and no client waits for the call.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_waits_for_its_client_at_every_server() {
    let store = Arc::<MemoryStore>::default();
    let (here, there) = (server(&store), server(&store));
    let (first, second) = (piped(&here, NOBODY).await, posting(&there, "second", NOBODY).await);
    waits(&letter(&first, "known to both").await.unwrap());
    waits(&letter(&second, "known to both").await.unwrap());
    let early = one_waiting(&*store).await;
    waits(&letter(&first, "known to one").await.unwrap());
    let late = waiting(&*store).await.into_iter().find(|call| call.call_id != early.call_id).unwrap();
    drop((first, here));
    post(&store, &late, ApprovalDecision::Approve).await;
    post(&store, &early, ApprovalDecision::Deny(None)).await;
    while !waiting(&*store).await.iter().all(|call| call.call_id == late.call_id) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((sent("known to one"), waiting(&*store).await.len()), (0, 1));
    assert_eq!(text(&letter(&second, "known to one").await.unwrap()), "sent at 1");
    assert_eq!(sent("known to one"), 1);
}
