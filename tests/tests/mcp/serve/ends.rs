//! Calls that do not end well, and their records.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};
use tool_runtime::mcp::serve::McpServer;
use tool_runtime::mcp::source::{RemoteServer, ToolSource};
use tool_runtime::store::{MemoryStore, RecordFilter};
use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

use crate::serve::rig::{Client, admitted, call, outcomes, piped, records, request, runner, server, text};

#[tokio::test]
async fn a_failure_is_a_result_that_the_model_reads() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store)).await;
    let wrong = call(&client, "people__find", json!({"name": 5, "secret-key": "secret-value"})).await.unwrap();
    let read: Value = serde_json::from_str(text(&wrong)).unwrap();
    assert_eq!((wrong.is_error, &read["errorCode"]), (Some(true), &json!("validation_error")));
    assert_eq!(wrong.structured_content, None, "a client would hold it to the output schema");
    assert!(read["errors"].as_array().unwrap().iter().any(|error| error["pointer"] == "/name"), "{read}");
    assert!(!text(&wrong).contains("secret-value"));

    let failed = call(&client, "add", json!({"a": i64::MAX, "b": 1})).await.unwrap();
    assert_eq!((failed.is_error, text(&failed)), (Some(true), "The sum is too large."));
    let codes: Value = serde_json::from_str(&failed.content[1].as_text().unwrap().text).unwrap();
    let expected = json!({"ok": false, "errorCode": "execution_error", "toolCode": "overflow", "executed": true});
    assert_eq!(codes, expected, "as in-process");

    let waits = call(&client, "letters__send", json!({"text": "hello"})).await.unwrap();
    assert_eq!(waits.is_error, Some(true));
    assert!(text(&waits).contains("approval_required"));
    assert_eq!(tests::pending_calls(&*store, &RecordFilter::default()).await.len(), 1, "an operator decides");
}

#[tokio::test]
async fn a_panic_says_nothing_to_the_client() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store)).await;
    let ServiceError::McpError(error) = call(&client, "faults__panic", json!({})).await.unwrap_err() else { panic!() };
    assert_eq!((error.code, &*error.message, &error.data), (ErrorCode::INTERNAL_ERROR, "The server failed.", &None));
    // It may have written, and the model has to know.
    let late = call(&client, "faults__panic_late", json!({})).await.unwrap();
    assert!(late.is_error == Some(true) && text(&late).contains("outcome_unknown") && !text(&late).contains("secret"));
    let expected = [json!(["faults__panic", "panicked"]), json!(["faults__panic_late", "outcome_unknown"])];
    assert_eq!(outcomes(&records(&store, 2).await), expected);
}

#[tokio::test]
async fn files_beside_a_value_are_blocks_of_content() {
    let client = piped(&server(&Arc::default())).await;
    let all = call(&client, "files__all", json!({})).await.unwrap();
    let blocks = serde_json::to_value(&all.content).unwrap();
    let kinds: Vec<_> = blocks.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image", "resource", "resource_link", "resource"]);
    let plan = json!({"uri": "notes://plan", "mimeType": "application/json", "text": r#"{"a":1}"#});
    assert_eq!(blocks[2]["resource"], plan);
    assert_eq!(
        (&blocks[3]["uri"], &blocks[3]["name"]),
        (&json!("https://example.org/manual.html"), &json!("manual.html"))
    );
    assert!(blocks[4]["resource"]["uri"].as_str().unwrap().starts_with("ni:///sha-256;"), "{blocks}");
    assert_eq!(all.structured_content, Some(json!({"result": "all"})));

    let none = call(&client, "files__none", json!({})).await.unwrap();
    let blocks = serde_json::to_value(&none.content).unwrap();
    assert!(
        !blocks.to_string().contains("iVBOR") && blocks[1]["text"].as_str().unwrap().contains("1 file"),
        "{blocks}"
    );
}

#[tokio::test]
async fn a_result_that_was_cut_still_fits_its_schema() {
    let client = piped(&server(&Arc::default())).await;
    let cut = call(&client, "rows__many", json!({})).await.unwrap();
    let names = cut.structured_content.as_ref().unwrap()["names"].as_array().unwrap();
    assert!(!names.is_empty() && names.iter().all(Value::is_u64), "{names:?}");
    let left_out = format!("[{} more items did not fit into the result.]", 200 - names.len());
    assert_eq!(cut.content[1].as_text().unwrap().text, left_out);
}

/// Calls a tool and cancels the call once it has begun.
async fn cancelled(client: &Client, name: &str, arguments: Value, begun: impl Future<Output = ()>) {
    let call = rmcp::model::CallToolRequest::new(request(name, arguments));
    let sent = client
        .send_cancellable_request(ClientRequest::CallToolRequest(call), PeerRequestOptions::no_options())
        .await
        .unwrap();
    begun.await;
    sent.cancel(Some("nobody waits".to_owned())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_recorded_as_what_it_was() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store)).await;
    // The clock moves only when everything else waits.
    let begun = || tokio::time::sleep(Duration::from_millis(100));
    cancelled(&client, "slow__read", json!({}), begun()).await;
    cancelled(&client, "slow__write", json!({}), begun()).await;
    let expected = [json!(["slow__read", "cancelled"]), json!(["slow__write", "outcome_unknown"])];
    assert_eq!(outcomes(&records(&store, 2).await), expected);
    assert_eq!(text(&call(&client, "add", json!({"a": 1, "b": 1})).await.unwrap()), "2", "the run goes on");
}

/// The tool is another server's, which has to be looked at before the call, and does not answer.
#[tokio::test]
async fn a_call_is_cancelled_while_its_tools_server_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let held = folder.path().join("held");
    let hostile = RemoteServer::command("s", env!("CARGO_BIN_EXE_hostile-mcp")).args(["hang-second-list"]);
    let hostile = hostile.env("HELD", held.to_str().unwrap());
    let hostile = hostile.refresh(Duration::ZERO).connect_timeout(Duration::from_hours(1));
    let source = ToolSource::connect([hostile]).await.unwrap();
    let pin = source.tools().iter().find(|tool| tool.raw_name() == "echo").unwrap().pin().unwrap();
    let policy = format!(
        "allowed_tools = ['mcp__s__echo']\n[tools.mcp__s__echo]\npin = '{pin}'\nredact = ['text']\neffect = 'read_only'"
    );
    let store = Arc::<MemoryStore>::default();
    let catalog = ToolCatalog::builder().source(&source).build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).unwrap()).store(Arc::clone(&store));
    let server = McpServer::builder(runner.build().unwrap(), admitted).build().unwrap();
    let client = piped(&server).await;
    let looked_at = async {
        while !held.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    cancelled(&client, "mcp__s__echo", json!({"text": "hello"}), looked_at).await;
    let records = records(&store, 1).await;
    assert_eq!(outcomes(&records), [json!(["mcp__s__echo", "cancelled"])]);
    assert!(!records[0].executed);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_ends_its_calls_first() {
    let store = Arc::<MemoryStore>::default();
    let server = server(&store);
    let client = Arc::new(piped(&server).await);
    let running = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { call(&client, "slow__read", json!({})).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.close(Duration::from_millis(50)).await;
    assert_eq!(outcomes(&records(&store, 1).await), [json!(["slow__read", "cancelled"])]);
    let answer = running.await.unwrap().unwrap();
    assert!(answer.is_error == Some(true) && text(&answer).contains("cancelled"), "the client gets its answer");
}

#[tokio::test(start_paused = true)]
async fn one_call_too_many_is_refused_before_the_gate() {
    let store = Arc::<MemoryStore>::default();
    let server = McpServer::builder(runner(&store), admitted).max_calls(1).build().unwrap();
    let client = Arc::new(piped(&server).await);
    let first = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.call_tool(request("slow__read", json!({}))).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ServiceError::McpError(error) = call(&client, "math__add", json!({"a": 1, "b": 1})).await.unwrap_err() else {
        panic!()
    };
    assert_eq!((error.code.0, error.data), (-32000, Some(json!({"code": "busy"}))));
    first.abort();
    server.close(Duration::ZERO).await;
    assert_eq!(outcomes(&records(&store, 1).await), [json!(["slow__read", "cancelled"])]);
}

#[tokio::test]
async fn a_session_stays_with_whom_it_began() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let admit = move |_: &tool_runtime::mcp::serve::Peer<'_>| {
        let who = ["ada", "bob"][asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed).min(1)];
        Some(RunOptions::new().principal(who))
    };
    let store = Arc::<MemoryStore>::default();
    let client = piped(&McpServer::builder(runner(&store), admit).build().unwrap()).await;
    assert!(call(&client, "math__add", json!({"a": 1, "b": 1})).await.is_ok());
    assert!(call(&client, "math__add", json!({"a": 1, "b": 2})).await.is_err(), "now it would act for somebody else");
    assert_eq!(records(&store, 1).await.len(), 1);
}

#[test]
fn names_are_checked_when_the_server_is_built() {
    let refused = |tool: &str, name: &str| {
        let runner: ToolRunner = runner(&Arc::default());
        McpServer::builder(runner, admitted).expose(tool, name).build().unwrap_err()
    };
    assert_eq!(refused("nothing__there", "a").code(), "mcp_tool_unknown");
    assert_eq!(refused("math__add", "a b").code(), "mcp_name");
    assert_eq!(refused("math__add", "notes__write").code(), "mcp_name_taken");
}

/// A reply of another kind would be a reply to another request.
#[tokio::test]
async fn nothing_but_tools_is_offered() {
    let client = piped(&server(&Arc::default())).await;
    let info = client.peer_info().unwrap();
    let named = info.server_info.as_ref().unwrap();
    assert_eq!((&*named.name, &*named.version), ("rig", "1.2.3"));
    assert!(info.capabilities.tools.as_ref().unwrap().list_changed.is_none());
    assert!(info.capabilities.prompts.is_none() && info.capabilities.resources.is_none());
    let ping = client.send_request(ClientRequest::PingRequest(rmcp::model::PingRequest::default())).await.unwrap();
    assert!(matches!(ping, ServerResult::EmptyResult(_)));
}
