//! A server over HTTP: the requests that it admits, in the protocol revisions with sessions and in the one without, and
//! how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{ErrorCode, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientLifecycleMode, ServiceError, ServiceExt as _};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tool_runtime::mcp::serve::{HttpOptions, McpServer};
use tool_runtime::store::MemoryStore;
use tool_runtime::{ToolCall, ToolInvocationRecord};

use crate::serve::rig::{COUNTED, Client, Guest, admitted, call, outcomes, piped, records, runner, server, text};

pub(crate) async fn listening(server: &McpServer, options: &HttpOptions) -> SocketAddr {
    let (address, serving) = server.bind("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    tokio::spawn(serving);
    address
}

pub(crate) fn transport(address: SocketAddr, user: &str) -> StreamableHttpClientTransport<reqwest::Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let headers = [("x-user".parse().unwrap(), user.parse().unwrap())];
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"))
        .custom_headers(headers.into_iter().collect());
    StreamableHttpClientTransport::from_config(config)
}

/// A client of the era of sessions.
pub(crate) async fn with_session(address: SocketAddr, user: &str) -> Client {
    Guest(ProtocolVersion::LATEST_WITH_INITIALIZE).serve(transport(address, user)).await.expect("a handshake")
}

/// A client of 2026-07-28, which has none.
async fn without_session(address: SocketAddr, user: &str) -> Client {
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    rmcp::service::serve_client_with_lifecycle(Guest(ProtocolVersion::V_2026_07_28), transport(address, user), mode)
        .await
        .expect("a server that is discovered")
}

/// Sends a request as it is and returns the status and the response.
pub(crate) async fn raw(address: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    // A server that refuses the head does not read the rest.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8_lossy(&response).into_owned();
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, response)
}

pub(crate) fn initialize() -> String {
    let client = json!({"name": "raw", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}

#[tokio::test]
async fn hosts_origins_and_sizes_of_bodies_are_checked() {
    let options = HttpOptions::new().host("tools.example.org").max_body(4096).max_sessions(2);
    let address = listening(&server(&Arc::default()), &options).await;
    let (host, user) = (format!("Host: {address}\r\n"), "x-user: ada\r\n");
    let asked = async |head: String, body: &str| raw(address, &head, body).await.0;
    let body = initialize();
    assert_eq!(asked(format!("{host}{user}Origin: http://evil.example\r\n"), &body).await, 403);
    assert_eq!(asked(format!("Host: evil.example\r\n{user}"), &body).await, 403);
    assert_eq!(asked(format!("{host}{user}Origin: http://localhost:1\r\n"), &body).await, 403);
    assert_eq!(asked(format!("{host}{user}"), &format!("{:5000}", "{}")).await, 413);
    assert_eq!(asked(format!("{host}{user}Origin: http://localhost:{}\r\n", address.port()), &body).await, 200);
    assert_eq!(asked(format!("Host: tools.example.org\r\n{user}"), &body).await, 200);
    assert_eq!(asked(format!("{host}{user}"), &body).await, 503, "the third session");
}

/// A client that is not admitted and a handshake without a session take no room from others.
#[tokio::test]
async fn a_session_that_nobody_can_use_does_not_begin() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new().max_sessions(2)).await;
    let (host, user) = (format!("Host: {address}\r\n"), "x-user: ada\r\n");
    let modern = format!("{host}{user}mcp-protocol-version: 2026-07-28\r\n");
    let body = initialize();
    for (head, body) in [(host.clone(), body.clone()), (modern, body.replace("2025-11-25", "2026-07-28"))] {
        for _ in 0..3 {
            let (status, response) = raw(address, &head, &body).await;
            assert_eq!(status, 403, "{response}");
            assert!(!response.contains("mcp-session-id"), "{response}");
        }
    }
    for status in [200, 200, 503] {
        assert_eq!(raw(address, &format!("{host}{user}"), &body).await.0, status);
    }
}

#[tokio::test]
async fn a_session_is_of_no_use_to_anybody_else() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new()).await;
    let host = format!("Host: {address}\r\n");
    let (status, response) = raw(address, &format!("{host}x-user: ada\r\n"), &initialize()).await;
    assert_eq!(status, 200, "{response}");
    let id = response.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    let ping = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let head = |user: &str| format!("{host}{user}mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n");
    assert_eq!(raw(address, &head("x-user: bob\r\n"), &ping).await.0, 404);
    assert_eq!(raw(address, &head(""), &ping).await.0, 404);
    assert_eq!(raw(address, &head("x-user: ada\r\n"), &ping).await.0, 202);
}

#[tokio::test]
async fn a_port_in_use_is_said_clearly() {
    let server = server(&Arc::default());
    let address = listening(&server, &HttpOptions::new()).await;
    let error = server.bind(address, &HttpOptions::new()).await.map(|(address, _)| address).unwrap_err();
    assert_eq!(error.code(), "mcp_listen");
    assert!(error.to_string().contains("in use by another process"), "{error}");
}

/// The part of a record that does not depend on the time and the ids of a call.
fn comparable(record: &ToolInvocationRecord) -> Value {
    let mut record = serde_json::to_value(record).unwrap();
    for key in ["tool_call_id", "run_id", "started_at", "ended_at", "latency_ms"] {
        record.as_object_mut().unwrap().remove(key);
    }
    record
}

#[tokio::test]
async fn one_tool_is_the_same_tool_wherever_it_is_called() {
    let store = Arc::<MemoryStore>::default();
    let server = server(&store);
    let address = listening(&server, &HttpOptions::new()).await;
    let arguments = json!({"name": "Grace"});
    let run = runner(&store).run(tool_runtime::RunOptions::new().principal("ada").tenant("acme"));
    let here = run.exec(ToolCall::object("c1", "people__find", arguments.to_string())).await;
    let here: Value = serde_json::from_str(here.value().unwrap().get()).unwrap();
    let clients = [piped(&server).await, with_session(address, "ada").await, without_session(address, "ada").await];
    for client in &clients {
        let there = call(client, "people__find", arguments.clone()).await.unwrap();
        assert_eq!(there.structured_content.as_ref(), Some(&here));
        assert_eq!(serde_json::from_str::<Value>(text(&there)).unwrap(), here);
    }
    let records = records(&store, 4).await;
    let expected = comparable(&records[0]);
    for record in &records[1..] {
        assert_eq!(comparable(record), expected);
    }
}

#[tokio::test]
async fn values_that_are_no_objects_are_what_the_era_knows() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new()).await;
    let sum = json!({"a": 20, "b": 22});
    let before = with_session(address, "ada").await;
    assert_eq!(call(&before, "add", sum.clone()).await.unwrap().structured_content, Some(json!({"result": 42})));
    let now = without_session(address, "ada").await;
    assert_eq!(call(&now, "add", sum).await.unwrap().structured_content, Some(json!(42)));
    let listed = now.list_tools(None).await.unwrap();
    let add = listed.tools.iter().find(|tool| tool.name == "add").unwrap();
    assert_eq!(add.output_schema.as_ref().unwrap()["type"], "integer");
}

/// The list of a catalog does not change, so no client gets a notification.
#[tokio::test]
async fn a_server_without_changes_announces_none() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new()).await;
    let now = without_session(address, "ada").await;
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let refused = now.listen(filter).await.unwrap_err();
    let ServiceError::McpError(error) = refused else { panic!("{refused}") };
    assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
    let tools = now.peer_info().and_then(|info| info.capabilities.tools.clone()).expect("tools");
    assert_ne!(tools.list_changed, Some(true));
}

/// Many calls wait at the same time, each on its own connection. `MCP_CALLS` sets their number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_a_time_all_end_when_the_server_closes() {
    let calls = std::env::var("MCP_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(64);
    let store = Arc::<MemoryStore>::default();
    let server =
        McpServer::builder(runner(&store), admitted).expose("math__add", "add").max_calls(calls).build().unwrap();
    let address = listening(&server, &HttpOptions::new()).await;
    let client = Arc::new(with_session(address, "ada").await);
    let waiting: Vec<_> = (0..calls)
        .map(|_| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { call(&client, "slow__counted", json!({})).await })
        })
        .collect();
    while COUNTED.load(Ordering::Relaxed) < calls {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(call(&client, "add", json!({"a": 1, "b": 1})).await.is_err(), "one more is refused");
    server.close(Duration::from_millis(10)).await;
    for call in waiting {
        let answer = call.await.unwrap().expect("every client gets an answer");
        assert!(text(&answer).contains("cancelled"));
    }
    assert_eq!(outcomes(&records(&store, calls).await), vec![json!(["slow__counted", "cancelled"]); calls]);
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
