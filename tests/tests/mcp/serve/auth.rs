//! Bearer tokens over HTTP: the clients that are admitted, the refusals of others, and the places where a token is
//! visible.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tool_runtime::mcp::serve::{Authorization, HttpOptions, McpServer, Peer, Verified};
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{RunOptions, Secret};

use crate::serve::http::{initialize, listening, raw};
use crate::serve::rig::{outcomes, records, runner};

const RESOURCE: &str = "https://tools.example.org/mcp";

/// Tokens of an application, which can be revoked.
#[derive(Default)]
struct Tokens(Mutex<HashMap<String, Verified>>, Mutex<HashMap<String, Timestamp>>);

impl Tokens {
    fn add(&self, token: &str, verified: Verified) {
        self.0.lock().unwrap().insert(token.to_owned(), verified);
    }

    /// When a token was looked at for the first time.
    fn first_seen(&self, token: &str) -> Timestamp {
        self.1.lock().unwrap()[token]
    }

    fn verify(&self, token: &Secret<String>) -> Option<Verified> {
        assert_ne!(token.expose(), "breaks", "a defect of the application");
        let mut seen = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(token.expose().clone()).or_insert_with(Timestamp::now);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token.expose()).cloned()
    }
}

/// A token until a year.
fn of(principal: &str, resource: &str, year: u16) -> Verified {
    let expires = format!("{year}-01-01T00:00:00Z").parse().unwrap();
    Verified::new(RunOptions::new().principal(principal).tenant("acme"), resource, expires)
}

struct Rig {
    address: SocketAddr,
    tokens: Arc<Tokens>,
    store: Arc<MemoryStore>,
}

async fn rig() -> Rig {
    let tokens = Arc::<Tokens>::default();
    tokens.add("CANARY-ada", of("ada", RESOURCE, 2999).scope("tools").scope("more"));
    tokens.add("bob", of("bob", RESOURCE, 2999).scope("tools"));
    tokens.add("old", of("ada", RESOURCE, 2001).scope("tools"));
    tokens.add("elsewhere", of("ada", "https://other.example/mcp", 2999).scope("tools"));
    tokens.add("little", of("ada", RESOURCE, 2999));
    let known = Arc::clone(&tokens);
    let verify = move |token| {
        let known = Arc::clone(&known);
        async move { known.verify(&token) }
    };
    let authorization = Authorization::new(RESOURCE, verify).unwrap();
    let authorization = authorization.issuer("https://login.example.org").scope("tools").unwrap();
    let store = Arc::<MemoryStore>::default();
    let admit = |peer: &Peer<'_>| {
        assert_eq!(peer.header("authorization"), None, "a token is seen by nobody else");
        peer.verified().map(Verified::run_options)
    };
    let server = McpServer::builder(runner(&store), admit).build().unwrap();
    let address = listening(&server, &HttpOptions::new().authorization(authorization)).await;
    Rig { address, tokens, store }
}

impl Rig {
    async fn asks(&self, head: &str, body: &str) -> (u16, String) {
        raw(self.address, &format!("Host: {}\r\n{head}", self.address), body).await
    }

    async fn status(&self, token: &str) -> u16 {
        self.asks(&format!("Authorization: Bearer {token}\r\n"), &initialize()).await.0
    }
}

/// The header that says where to get a token.
fn challenge(response: &str) -> &str {
    response.lines().find_map(|line| line.strip_prefix("www-authenticate: ")).expect("a challenge")
}

#[tokio::test]
async fn only_a_valid_token_is_let_in() {
    let rig = rig().await;
    let metadata = "resource_metadata=\"https://tools.example.org/.well-known/oauth-protected-resource/mcp\"";
    for head in [
        "",
        "Authorization: Basic YTpi\r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer bob\r\nAuthorization: Bearer CANARY-ada\r\n",
    ] {
        let (status, response) = rig.asks(head, &initialize()).await;
        assert_eq!((status, challenge(&response)), (401, &*format!("Bearer {metadata}, scope=\"tools\"")), "{head}");
    }
    for token in ["unknown", "old", "elsewhere"] {
        let (status, response) = rig.asks(&format!("Authorization: Bearer {token}\r\n"), &initialize()).await;
        assert_eq!(status, 401, "{token}");
        assert!(challenge(&response).ends_with("error=\"invalid_token\"") && !response.contains(token), "{response}");
    }
    let (status, response) = rig.asks("Authorization: Bearer little\r\n", &initialize()).await;
    assert_eq!(status, 403);
    assert!(challenge(&response).contains("scope=\"tools\", error=\"insufficient_scope\""), "{response}");
    assert_eq!(rig.status("breaks").await, 500);
    assert_eq!(rig.status("CANARY-ada").await, 200);
    // Other defects of a request are reported only to clients that are admitted.
    let evil = "Authorization: Bearer bob\r\nOrigin: http://evil.example\r\n";
    assert_eq!(rig.asks(evil, &initialize()).await.0, 403);
    rig.tokens.0.lock().unwrap().clear();
    assert_eq!(rig.status("CANARY-ada").await, 401, "a token that was revoked");
}

#[tokio::test]
async fn a_session_stays_with_the_principal_of_its_token() {
    let rig = rig().await;
    let (_, response) = rig.asks("Authorization: Bearer CANARY-ada\r\n", &initialize()).await;
    let id = response.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "math__add", "arguments": {"a": 2, "b": 3}}});
    let call = call.to_string();
    let head = |token: &str| {
        format!("Authorization: Bearer {token}\r\nmcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n")
    };
    assert_eq!(rig.asks(&head("bob"), &call).await.0, 404);
    assert_eq!(rig.asks(&head("unknown"), &call).await.0, 401);
    let (status, response) = rig.asks(&head("CANARY-ada"), &call).await;
    assert!(status == 200 && response.contains("\"5\""), "{response}");
    // A refreshed token of the same principal is as good.
    rig.tokens.add("refreshed", of("ada", RESOURCE, 2999).scope("tools"));
    assert_eq!(rig.asks(&head("refreshed"), &call).await.0, 200);
    let records = rig.store.calls(&RecordFilter::default()).await.unwrap();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record.principal.as_deref() == Some("ada")));
    assert!(!format!("{records:?}").contains("CANARY"));
}

/// Asks for a path.
async fn fetch(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    (response.split(' ').nth(1).unwrap().parse().unwrap(), response)
}

#[tokio::test]
async fn a_client_learns_who_issues_tokens() {
    let rig = rig().await;
    let (status, response) = fetch(rig.address, "/.well-known/oauth-protected-resource/mcp").await;
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(status == 200 && head.contains("content-type: application/json"), "{response}");
    let expected = json!({"resource": RESOURCE, "authorization_servers": ["https://login.example.org"],
        "scopes_supported": ["tools"], "bearer_methods_supported": ["header"]});
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
    assert_eq!(fetch(rig.address, "/.well-known/oauth-protected-resource").await.0, 404);
    let open = McpServer::builder(runner(&rig.store), |_: &Peer<'_>| None).build().unwrap();
    let address = listening(&open, &HttpOptions::new()).await;
    assert_eq!(fetch(address, "/.well-known/oauth-protected-resource/mcp").await.0, 404);
}

/// Makes a request with a token that expires soon, and returns the answer, which ends with the token. With a token that
/// lasts, it would not end. On a busy machine the request may come too late, so it is repeated with more time.
async fn open_for(rig: &Rig, token: &str, request: impl Fn(&str) -> String) -> String {
    let mut lasts = Duration::from_millis(1200);
    for attempt in 0.. {
        let token = format!("{token}{attempt}");
        let expires = Timestamp::now() + lasts;
        let response = answered(rig, &token, expires, request(&token)).await;
        if rig.tokens.first_seen(&token) + Duration::from_millis(100) < expires {
            assert!(Timestamp::now() >= expires, "it ended before its token: {response}");
            return response;
        }
        lasts *= 2;
    }
    unreachable!()
}

async fn answered(rig: &Rig, token: &str, expires: Timestamp, request: String) -> String {
    let verified = Verified::new(RunOptions::new().principal("ada").tenant("acme"), RESOURCE, expires);
    rig.tokens.add(token, verified.scope("tools"));
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_token_of_its_request() {
    let rig = rig().await;
    let (_, response) = rig.asks("Authorization: Bearer CANARY-ada\r\n", &initialize()).await;
    let session =
        response.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    let head = |token: &str| {
        format!(
            "Host: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n",
            rig.address
        )
    };
    let call = |meta: Value| {
        let params = json!({"name": "slow__read", "arguments": {}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
    };
    // A stream that waits for notifications.
    let of_session = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    let get = |token: &str| format!("GET /mcp HTTP/1.1\r\n{}{of_session}\r\n", head(token));
    let response = open_for(&rig, "one", get).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    // A call of a session: with that token, nobody can get its result any more.
    let body = call(json!({}));
    let posted = |head: String, body: &str| {
        let length = body.len();
        format!("POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let response = open_for(&rig, "two", |token| posted(format!("{}{of_session}", head(token)), &body)).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    // A call of a request without a session ends with its stream.
    let body = call(json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}));
    let modern = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: slow__read\r\n";
    let response = open_for(&rig, "three", |token| posted(format!("{}{modern}", head(token)), &body)).await;
    assert!(response.starts_with("HTTP/1.1 "), "{response}");
    let records = records(&rig.store, 1).await;
    assert_eq!(outcomes(&records), [json!(["slow__read", "cancelled"])]);
}

#[test]
fn a_scope_that_a_header_cannot_hold_is_refused_where_it_is_written() {
    for scope in ["a\"b", "a\\b", "two words", ""] {
        let error = Authorization::new(RESOURCE, |_| async { None }).unwrap().scope(scope).unwrap_err();
        assert!(error.code() == "mcp_scope" && error.to_string().contains("is not a scope"), "{error}");
    }
}

#[test]
fn an_address_that_is_not_one_is_refused() {
    let error = Authorization::new("tools.example.org", |_| async { None }).unwrap_err();
    assert!(error.code() == "mcp_resource" && error.to_string().contains("https://"), "{error}");
}
