//! Servers behind a URL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use tests::hostile::{Act, CANARY, Hostile};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tool_runtime::mcp::serve::{HttpOptions, McpServer, Peer};
use tool_runtime::mcp::source::{RemoteServer, ToolSource};
use tool_runtime::registration::DynamicTool;
use tool_runtime::{Outcome, RunOptions, ToolCatalog, ToolEffect, ToolPolicy, ToolRunner};

use crate::Echo;
use crate::source::{NEVER, SHORT, call, connect, echoes, quarantine, run_of, tool};

/// How an endpoint answers, in addition to the scenario.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Way {
    Json,
    Events,
    Redirect,
    Broken,
    Html,
    Silent,
    /// Answers requests with this method with this HTTP status.
    Refuses(&'static str, &'static str),
    /// Works, but for requests with the token of an account.
    RedirectsAccounts,
    /// As `Refuses`, but only for requests with the token of an account.
    RefusesAccounts(&'static str, &'static str),
    /// Answers HTTP 400 to calls in the first session of an account, as servers do that were restarted.
    StaleAccounts,
    /// Repeats the headers of a call in its answer.
    Repeats,
    /// Sends pings over the `GET` stream, and never answers the POST with an answer to one.
    Pings,
    /// Ends the stream of a call before its answer (SEP-1699), and is down for one request after that.
    Early,
    /// As `Early`, but each resumed stream has no event.
    EarlyEmpty,
    /// As `Early`, but no stream can be resumed.
    EarlyGone,
}

/// The hostile server behind a URL, and its requests.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn endpoint(scenario: &str, way: Way) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (server, requests) = (Arc::new(Mutex::new(Hostile::new(scenario))), Arc::new(Mutex::new(Vec::new())));
    let held = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&requests);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&server), Arc::clone(&held), Arc::clone(&seen), way));
        }
    });
    Endpoint { url, requests, task }
}

fn json_header() -> String {
    "content-type: application/json\r\n".to_owned()
}

/// The body of a refusal that the SDKs send for an unknown session.
fn no_session() -> String {
    r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#.to_owned()
}

/// The answer of a tool that repeats the headers of its request, each tool in another form.
fn repeated(head: &str, body: &str) -> String {
    let request: Value = serde_json::from_str(body).unwrap();
    let content = json!([{"type": "text", "text": format!("rejected: {head}")}]);
    let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
    match request["params"]["name"].as_str().unwrap() {
        "silent" => answer = json!({"id": null, "error": {"code": -32001, "message": content[0]["text"]}}),
        "refuse" => answer["error"] = json!({"code": -32001, "message": content[0]["text"]}),
        "report" => answer["result"] = json!({"content": content, "isError": true}),
        _ => answer["result"] = json!({"content": content}),
    }
    answer.to_string()
}

/// Sends many pings, and then a change of the tools. Each is a chunk of its own.
async fn ping(mut stream: TcpStream) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned();
    let pings = (0..100).map(|id| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n\n"));
    let changed = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n".to_owned();
    for text in std::iter::once(head).chain(pings).chain([changed]) {
        let _ = stream.write_all(text.as_bytes()).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    std::future::pending::<()>().await;
}

async fn answer(
    mut stream: TcpStream,
    server: Arc<Mutex<Hostile>>,
    held: Arc<Mutex<String>>,
    seen: Arc<Mutex<Vec<String>>>,
    way: Way,
) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let (head, body) = loop {
        let Ok(count @ 1..) = stream.read(&mut buffer).await else { return };
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head, body.to_owned());
        }
    };
    seen.lock().await.push(format!("{head}\n\n{body}"));
    match way {
        Way::Pings if head.starts_with("get ") => return ping(stream).await,
        Way::Pings if body.contains(r#""result":{}"#) => return std::future::pending().await,
        _ => {}
    }
    let elsewhere = format!("location: http://127.0.0.1:1/{CANARY}\r\n");
    let is_of_account = head.contains("authorization: bearer account-");
    let is_first = is_of_account && {
        let seen = seen.lock().await;
        seen.iter().filter(|one| one.contains("bearer account-") && one.contains("\"initialize\"")).count() < 2
    };
    let (status, kind, body) = match way {
        Way::StaleAccounts if is_first && body.contains("\"tools/call\"") => {
            ("400 Bad Request", json_header(), no_session())
        }
        Way::RedirectsAccounts if is_of_account => ("307 Temporary Redirect", elsewhere, String::new()),
        Way::RefusesAccounts(method, status) if is_of_account && body.contains(&format!("\"{method}\"")) => {
            (status, json_header(), no_session())
        }
        Way::Repeats if body.contains("\"tools/call\"") => {
            let status = if body.contains("\"silent\"") { "400 Bad Request" } else { "200 OK" };
            (status, json_header(), repeated(&head, &body))
        }
        Way::Redirect => ("307 Temporary Redirect", elsewhere, String::new()),
        Way::Broken => ("500 Internal Server Error", String::new(), CANARY.to_owned()),
        Way::Html => ("200 OK", "content-type: text/html\r\n".to_owned(), "<h1>hello</h1>".to_owned()),
        Way::Silent => return std::future::pending().await,
        Way::Refuses(method, status) if body.contains(&format!("\"{method}\"")) => {
            (status, json_header(), no_session())
        }
        _ if head.starts_with("get ") => {
            let again = seen.lock().await.iter().filter(|request| request.contains("last-event-id: ")).count();
            let events = "content-type: text/event-stream\r\n".to_owned();
            match (way, again) {
                (Way::Early, 1) => ("503 Service Unavailable", String::new(), String::new()),
                // The id of an event that was cut is not that of the last one.
                (Way::Early, 2) => ("200 OK", events, "id: two\ndata:\n\nid: cut\ndata: {".to_owned()),
                (Way::Early, _) if head.contains("last-event-id: two") => {
                    ("200 OK", events, format!("id: three\ndata: {}\n\n", held.lock().await))
                }
                (Way::EarlyEmpty, _) => ("200 OK", events, ": nothing\n\n".to_owned()),
                _ => ("405 Method Not Allowed", String::new(), String::new()),
            }
        }
        Way::Early | Way::EarlyEmpty | Way::EarlyGone if body.contains("\"tools/call\"") => {
            if let Some(Act::Say(line)) = server.lock().await.handle(&body).into_iter().next() {
                *held.lock().await = line;
            }
            let events = "content-type: text/event-stream\r\n".to_owned();
            ("200 OK", events, "id: one\nretry: 1\ndata:\n\n".to_owned())
        }
        _ => {
            let said = server.lock().await.handle(&body);
            let said: Vec<_> = said
                .into_iter()
                .filter_map(|act| match act {
                    Act::Say(line) => Some(line),
                    _ => None,
                })
                .collect();
            match said.as_slice() {
                [] => ("202 Accepted", String::new(), String::new()),
                lines if way == Way::Events => {
                    let events: Vec<_> = lines.iter().map(|line| format!("event: message\ndata: {line}\n\n")).collect();
                    let events = events.concat();
                    ("200 OK", "content-type: text/event-stream\r\n".to_owned(), format!(": hello\n\n{events}"))
                }
                lines => ("200 OK", json_header(), lines[0].clone()),
            }
        }
    };
    let session = if body.contains("protocolVersion") { "mcp-session-id: abc\r\n" } else { "" };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{kind}{session}content-length: {length}\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
}

pub(crate) fn source(endpoint: &Endpoint) -> RemoteServer {
    RemoteServer::url("s", &endpoint.url)
        .header("authorization", "Bearer tok")
        .connect_timeout(NEVER)
        .call_timeout(NEVER)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_a_url_works_in_every_form() {
    for (scenario, way) in [("well-behaved", Way::Json), ("well-behaved", Way::Events), ("stateless", Way::Json)] {
        let endpoint = endpoint(scenario, way).await;
        let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
        assert!(servers.notes().is_empty(), "{:?}", servers.notes());
        echoes(&servers).await;
        for (raw, outcome) in
            [("big", Outcome::ResultTooLarge), ("refuse", Outcome::ExecutionError), ("half", Outcome::Ok)]
        {
            let name = format!("mcp__s__{raw}");
            let result = call(&run_of(&servers, &[&name], ""), &name, "{}").await;
            assert_eq!(result.outcome(), outcome, "{raw}: {:?}", result.detail());
        }
        servers.shutdown().await;
        let servers = ToolSource::connect([source(&endpoint).call_timeout(SHORT)]).await.unwrap();
        let hanging = call(&run_of(&servers, &["mcp__s__hang"], ""), "mcp__s__hang", "{}").await;
        assert_eq!(hanging.outcome(), Outcome::OutcomeUnknown);
        servers.shutdown().await;
        let requests = endpoint.requests.lock().await.join("\n\n\n");
        assert!(requests.contains("authorization: bearer tok") && !requests.contains("origin:"), "{requests}");
        let version = if scenario == "stateless" { "2026-07-28" } else { "2025-06-18" };
        assert!(requests.contains(&format!("mcp-protocol-version: {version}")), "{requests}");
        assert_eq!(requests.contains("mcp-session-id: abc"), scenario != "stateless", "{requests}");
        assert_eq!(requests.contains("io.modelcontextprotocol/clientCapabilities"), scenario == "stateless");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_may_be_answered_with_the_newest_revision() {
    for scenario in ["stateless-says", "says-stateless"] {
        let endpoint = endpoint(scenario, Way::Json).await;
        let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
        assert!(servers.notes().is_empty(), "{scenario}: {:?}", servers.notes());
        echoes(&servers).await;
        let requests = endpoint.requests.lock().await.clone();
        let call = requests.iter().find(|one| one.contains("mcp-method: tools/call"));
        let call = call.unwrap_or_else(|| panic!("{requests:?}"));
        assert!(call.contains("mcp-protocol-version: 2026-07-28") && call.contains("clientCapabilities"), "{call}");
    }
}

/// Since 2026-07-28 marked arguments are also sent as headers. Over standard input and output a mark has no meaning.
#[tokio::test(flavor = "multi_thread")]
async fn marked_arguments_are_sent_as_headers() {
    let arguments = r#"{"region":"Süd","place":{"count":7}}"#;
    for scenario in ["stateless-headers", "headers"] {
        let endpoint = endpoint(scenario, Way::Json).await;
        let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
        assert_eq!(quarantine(&servers, "mismarked"), "illegal_header");
        let run = run_of(&servers, &["mcp__s__marked"], "");
        for arguments in [arguments, "{}"] {
            let result = call(&run, "mcp__s__marked", arguments).await;
            assert_eq!(result.outcome(), Outcome::Ok, "{:?}", result.detail());
        }
        let requests = endpoint.requests.lock().await.clone();
        let of_call = |request: &str| {
            let lines = request.lines().filter(|line| line.starts_with("mcp-param-"));
            let mut lines: Vec<_> = lines.map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let calls = requests.iter().filter(|request| request.contains("\"tools/call\"")).map(|call| of_call(call));
        // The endpoint lowers the case of heads.
        let sent = ["mcp-param-count: 7".to_owned(), "mcp-param-region: =?base64?u8o8za==?=".to_owned()];
        let expected = if scenario == "headers" { Vec::new() } else { sent.to_vec() };
        assert_eq!(calls.collect::<Vec<_>>(), [expected, Vec::new()]);
        servers.shutdown().await;
    }
    let servers = connect("headers").await;
    for name in ["mcp__s__marked", "mcp__s__mismarked"] {
        assert_eq!(call(&run_of(&servers, &[name], ""), name, "{}").await.outcome(), Outcome::Ok);
    }
}

/// The server of this library refuses a call whose headers are missing or differ from its arguments.
#[tokio::test(flavor = "multi_thread")]
async fn a_strict_server_accepts_the_headers_of_a_call() {
    let mark = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
    let schema = json!({"type": "object", "properties": {"text": mark("string", "Text"),
        "place": {"type": "object", "properties": {"count": mark("integer", "Count"), "sure": mark("boolean", "Sure")}}}});
    let echo = DynamicTool::new("t__echo", "Echoes.", schema, ToolEffect::ReadOnly, Arc::new(Echo));
    let catalog = ToolCatalog::builder().dynamic(echo.redact(["text", "place"])).build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["t__echo"])).build().unwrap();
    let server = McpServer::builder(runner, |_: &Peer<'_>| Some(RunOptions::new())).build().unwrap();
    // A proxy that lets no handshake through.
    let service = axum::Router::new().nest_service("/mcp", server.http(&HttpOptions::new()));
    let service = service.layer(axum::middleware::from_fn(async |request: Request, next: Next| {
        let is_handshake = request.headers().get("mcp-method").is_some_and(|method| method == "initialize");
        if is_handshake { StatusCode::METHOD_NOT_ALLOWED.into_response() } else { next.run(request).await }
    }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, service).await });
    let there = RemoteServer::url("s", format!("http://{address}/mcp")).connect_timeout(NEVER).call_timeout(NEVER);
    let servers = ToolSource::connect([there]).await.unwrap();
    let name = tool(&servers, "t__echo").name().unwrap().to_owned();
    let run = run_of(&servers, &[&name], "");
    for text in ["us-west1", "", " padded ", "two\nlines", "Hello, 世界", "=?base64?literal?=", "tab\t"] {
        for place in [json!({"count": -7, "sure": false}), json!({"count": 9_007_199_254_740_993_u64}), json!({})] {
            let arguments = json!({"text": text, "place": place}).to_string();
            let result = call(&run, &name, &arguments).await;
            assert_eq!(result.outcome(), Outcome::Ok, "{arguments}: {:?}", result.detail());
        }
    }
    servers.shutdown().await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_is_not_a_server_is_down() {
    for (way, note) in [
        (Way::Redirect, "redirects are not followed"),
        (Way::Broken, "HTTP 500"),
        (Way::Html, "cannot be read"),
        (Way::Refuses("initialize", "404 Not Found"), "HTTP 404: Session not found"),
        (Way::Silent, "did not answer in time"),
    ] {
        let endpoint = endpoint("well-behaved", way).await;
        let limit = if way == Way::Silent { SHORT } else { NEVER };
        let servers = ToolSource::connect([source(&endpoint).connect_timeout(limit)]).await.unwrap();
        let found = servers.notes().remove("s").unwrap_or_default();
        assert!(found.contains(note) && !found.contains(CANARY), "{found}");
        // The target of the redirect gets no request.
        assert!(!endpoint.requests.lock().await.iter().any(|request| request.contains("/canary")));
    }
    let servers = ToolSource::connect([RemoteServer::url("s", "http://127.0.0.1:1/mcp")]).await.unwrap();
    assert!(servers.notes()["s"].contains("cannot be reached"), "{:?}", servers.notes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_or_header_that_cannot_be_used_is_an_error_without_it() {
    for server in [
        RemoteServer::url("s", "file:///etc/passwd"),
        RemoteServer::url("s", "CANARY-5f1d"),
        RemoteServer::url("s", "https://user:CANARY-5f1d@example.com/"),
        RemoteServer::url("s", "https://example.com").header("x y", "z"),
        RemoteServer::url("s", "https://example.com").header("x", "CANARY-5f1d\n"),
        RemoteServer::url("s", "https://example.com").header("Mcp-Session-Id", "z"),
    ] {
        let error = ToolSource::connect([server]).await.unwrap_err();
        assert!(error.code() == "server_url" && !error.to_string().contains(CANARY), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_early_is_taken_up_again() {
    for (way, outcome) in [
        (Way::Early, Outcome::Ok),
        (Way::EarlyEmpty, Outcome::OutcomeUnknown),
        (Way::EarlyGone, Outcome::OutcomeUnknown),
    ] {
        let endpoint = endpoint("well-behaved", way).await;
        let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
        let run = run_of(&servers, &["mcp__s__echo"], "");
        let result = call(&run, "mcp__s__echo", r#"{"text":"resumed"}"#).await;
        assert_eq!(result.outcome(), outcome, "{:?}", result.detail());
        assert_eq!(result.to_model().contains("resumed"), way == Way::Early);
        let requests = endpoint.requests.lock().await.clone();
        let calls = requests.iter().filter(|request| request.contains("\"tools/call\"")).count();
        assert_eq!(calls, 1, "the request itself is never repeated");
        let ids: Vec<_> =
            requests.iter().filter_map(|one| one.split("last-event-id: ").nth(1)?.lines().next()).collect();
        let expected = match way {
            Way::Early => vec!["one", "one", "two"],
            Way::EarlyGone => vec!["one"],
            // The attempts are limited.
            _ => vec!["one"; 6],
        };
        assert_eq!(ids, expected);
        let again = requests.iter().filter(|request| request.contains("last-event-id"));
        assert!(
            again.into_iter().all(|one| one.contains("authorization: bearer tok") && one.contains("mcp-session-id"))
        );
        servers.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_answer_gets_few() {
    let begun = Instant::now();
    let endpoint = endpoint("well-behaved", Way::Pings).await;
    let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
    let answers = loop {
        let requests = endpoint.requests.lock().await.clone();
        let count = |part: &str| requests.iter().filter(|request| request.contains(part)).count();
        let answers = count(r#""result":{}"#);
        // The second list follows the last ping.
        if answers > 0 && count("\"tools/list\"") > 1 {
            break answers;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    // The client gives up an answer after five seconds and sends another one in its place.
    let rounds = usize::try_from(begun.elapsed().as_secs() / 5).unwrap() + 1;
    assert!(answers <= 16 * rounds, "{answers} in {rounds} rounds");
    echoes(&servers).await;
    servers.shutdown().await;
}
