//! Bearer tokens over HTTP: who is let in, what others are told, and where a token is seen.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tool_runtime::mcp::serve::{Authorization, HttpOptions, McpServer, McpServerError, Peer, Verified, VerifyToken};
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{RunOptions, Secret};

use crate::http::{initialize, listening, raw};
use crate::rig::runner;

const RESOURCE: &str = "https://tools.example.org/mcp";

/// Tokens of an application, which can be revoked.
#[derive(Default)]
struct Tokens(Mutex<HashMap<String, Verified>>);

impl Tokens {
    fn add(&self, token: &str, verified: Verified) {
        self.0.lock().unwrap().insert(token.to_owned(), verified);
    }
}

#[async_trait]
impl VerifyToken for Tokens {
    async fn verify(&self, token: &Secret<String>) -> Option<Verified> {
        assert_ne!(token.expose(), "breaks", "a defect of the application");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token.expose()).cloned()
    }
}

/// The same tokens for a server and its test.
struct Shared(Arc<Tokens>);

#[async_trait]
impl VerifyToken for Shared {
    async fn verify(&self, token: &Secret<String>) -> Option<Verified> {
        self.0.verify(token).await
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
    let authorization = Authorization::new(RESOURCE, Shared(Arc::clone(&tokens))).unwrap();
    let authorization = authorization.issuer("https://login.example.org").scope("tools");
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
    // What else is wrong with a request is said to those who are let in.
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

#[test]
fn an_address_that_is_not_one_is_refused() {
    let error = Authorization::new("tools.example.org", Tokens::default()).unwrap_err();
    assert!(matches!(&error, McpServerError::Resource { .. }) && error.to_string().contains("https://"), "{error}");
}
