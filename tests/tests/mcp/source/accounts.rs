//! Servers that are called with the account of the principal of a run.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tests::spans::Traced;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest};
use tool_runtime::mcp::serve::{Authorization, HttpOptions, McpServer, Peer, Verified};
use tool_runtime::mcp::source::{McpTool, RemoteServer, ToolSource};
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{Outcome, Run, RunOptions, Secret, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::source::call;
use crate::source::http::{Endpoint, Way, endpoint, source};

const NAME: &str = "mcp__s__tickets__count";
/// One call is made again and again.
const LOOPS: &str = "\n[loop_guard]\nwarn_at = 0\nstop_at = 0";
const RESOURCE: &str = "https://tickets.example/mcp";

/// Tokens with their holders; both sides of an authorization server.
#[derive(Clone, Default)]
struct Issuer(Arc<Mutex<HashMap<String, String>>>);

impl Issuer {
    fn set(&self, key: &str, value: &str) {
        self.0.lock().unwrap().insert(key.to_owned(), value.to_owned());
    }

    fn remove(&self, key: &str) {
        self.0.lock().unwrap().remove(key);
    }

    fn get(&self, key: &str) -> Option<String> {
        self.0.lock().unwrap().get(key).cloned()
    }
}

/// The server's side: principals by token.
fn authorization(issuer: &Issuer) -> Authorization {
    let issuer = issuer.clone();
    let verify = move |token: Secret<String>| {
        let principal = issuer.get(token.expose());
        async move {
            let expires = "2999-01-01T00:00:00Z".parse().ok()?;
            Some(Verified::new(RunOptions::new().principal(principal?), RESOURCE, expires))
        }
    };
    Authorization::new(RESOURCE, verify).unwrap()
}

/// The client's side: tokens by account.
struct Vault(Issuer);

#[async_trait]
impl ConnectionBroker for Vault {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        assert_eq!(request.kind, "tickets");
        assert!(request.wants_bearer_token());
        if !request.id.as_str().starts_with(request.principal.unwrap_or_default()) {
            return Err(ConnectionError::Forbidden);
        }
        let token = self.0.get(request.id.as_str()).ok_or(ConnectionError::Unknown)?;
        Ok(ConnectionHandle::bearer_token(Secret::new(token)))
    }
}

/// Counts tickets.
#[tool(name = "tickets__count", effect = read_only, redact = ["$"])]
fn count() -> Result<u32, ToolError> {
    Ok(7)
}

/// A server of tickets, and its records.
async fn tickets(tokens: &Issuer) -> (String, Arc<MemoryStore>) {
    let store = Arc::<MemoryStore>::default();
    let catalog = ToolCatalog::builder().tool::<count>().build().unwrap();
    let policy = ToolPolicy::from_toml(&format!("allowed_tools = ['tickets__count']{LOOPS}")).unwrap();
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(&store));
    let admit = |peer: &Peer<'_>| peer.verified().map(Verified::run_options);
    let server = McpServer::builder(runner.build().unwrap(), admit).build().unwrap();
    let options = HttpOptions::new().authorization(authorization(tokens));
    let (address, serving) = server.bind("127.0.0.1:0".parse().unwrap(), &options).await.unwrap();
    let url = format!("http://{address}/mcp");
    tokio::spawn(serving);
    (url, store)
}

fn runner(servers: &ToolSource, vault: Issuer) -> ToolRunner {
    let pin = servers.tools().iter().find(|tool| tool.name() == Some(NAME)).and_then(McpTool::pin).unwrap();
    let policy = format!("allowed_tools = ['{NAME}']\n[tools.{NAME}]\npin = '{pin}'\nredact = ['result']{LOOPS}");
    let catalog = Arc::new(ToolCatalog::builder().source(servers).build().unwrap());
    let policy = ToolPolicy::from_toml(&policy).unwrap();
    assert!(ToolRunner::builder(Arc::clone(&catalog), policy.clone()).build().is_err(), "nobody could give a token");
    ToolRunner::builder(catalog, policy).broker(Vault(vault)).build().unwrap()
}

fn run(runner: &ToolRunner, principal: &str, account: &str) -> Run {
    runner.run(RunOptions::new().principal(principal).connection("tickets", ConnectionId::from(account)))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_principal_calls_on_an_account_of_their_own() {
    let (tokens, vault) = (Issuer::default(), Issuer::default());
    for (token, principal) in [("operator", "operator"), ("account-ada-1", "ada"), ("account-bob", "bob")] {
        tokens.set(token, principal);
    }
    vault.set("ada@tickets", "account-ada-1");
    vault.set("bob@tickets", "account-bob");
    let (url, theirs) = tickets(&tokens).await;
    let server = || RemoteServer::url("s", &url).connection("tickets").call_timeout(crate::source::NEVER);
    let closed = ToolSource::connect([server()]).await.unwrap();
    assert!(closed.notes()["s"].contains("HTTP 401"), "{:?}", closed.notes());
    let servers = ToolSource::connect([server().header("authorization", "Bearer operator")]).await.unwrap();
    let runner = runner(&servers, vault.clone());
    let (ada, bob) = (run(&runner, "ada", "ada@tickets"), run(&runner, "bob", "bob@tickets"));
    for (run, principal) in [(&ada, "ada"), (&bob, "bob"), (&ada, "ada")] {
        let result = call(run, NAME, "{}").await;
        assert_eq!(result.to_model(), r#"{"result":7}"#, "{:?}", result.detail());
        let record = theirs.calls(&RecordFilter::default()).await.unwrap().pop().unwrap();
        assert_eq!(record.principal.as_deref(), Some(principal));
    }
    // A token that is refreshed is used at the next call; the old one is worth nothing then.
    tokens.remove("account-ada-1");
    let refused = call(&ada, NAME, "{}").await;
    assert_eq!((refused.outcome(), refused.executed()), (Outcome::ConnectionUnavailable, false));
    let why = refused.detail().unwrap();
    assert!(why.contains("`tickets` (HTTP 401)") && !why.contains("account-"), "{why}");
    tokens.set("account-ada-2", "ada");
    vault.set("ada@tickets", "account-ada-2");
    assert_eq!(call(&ada, NAME, "{}").await.outcome(), Outcome::Ok);
    // So is one that was revoked here, although the server would still take it.
    vault.remove("ada@tickets");
    assert_eq!(call(&ada, NAME, "{}").await.outcome(), Outcome::ConnectionUnavailable);
    let borrowed = run(&runner, "ada", "bob@tickets");
    assert_eq!(call(&borrowed, NAME, "{}").await.outcome(), Outcome::ConnectionUnavailable);
    let none = runner.run(RunOptions::new().principal("ada"));
    assert_eq!(call(&none, NAME, "{}").await.outcome(), Outcome::ConnectionUnavailable);
    assert_eq!(theirs.calls(&RecordFilter::default()).await.unwrap().len(), 4, "nothing reached the server");
    servers.shutdown().await;
}

/// A runner that may call these tools of an endpoint with an account, and the tokens of the accounts.
async fn with_accounts(endpoint: &Endpoint, names: &[&str]) -> (ToolSource, ToolRunner, Issuer) {
    let server = source(endpoint).connection("tickets").header("x-api-key", "key-of-operator-77");
    let servers = ToolSource::connect([server]).await.unwrap();
    assert!(servers.notes().is_empty(), "{:?}", servers.notes());
    let vault = Issuer::default();
    let mut policy = format!("allowed_tools = {names:?}\n{LOOPS}\n");
    for name in names {
        let pin = servers.tools().iter().find(|tool| tool.name() == Some(name)).and_then(McpTool::pin).unwrap();
        let _ = write!(policy, "[tools.{name}]\npin = '{pin}'\nredact = ['text', '$error']\n");
    }
    let catalog = ToolCatalog::builder().source(&servers).build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).unwrap()).broker(Vault(vault.clone()));
    (servers, runner.build().unwrap(), vault)
}

const ECHO: &str = "mcp__s__echo";

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_fails_is_no_call() {
    for status in ["500 Internal Server Error", "200 OK"] {
        let endpoint = endpoint("well-behaved", Way::RefusesAccounts("initialize", status)).await;
        let (servers, runner, vault) = with_accounts(&endpoint, &[ECHO]).await;
        vault.set("ada", "account-ada");
        let result = call(&run(&runner, "ada", "ada"), ECHO, r#"{"text":"x"}"#).await;
        assert_eq!(result.outcome(), Outcome::ExecutionError, "{status}: {:?}", result.detail());
        assert!(result.detail().unwrap().contains("the connection of the account did not open"));
        let requests = endpoint.requests.lock().await.join("\n");
        assert!(requests.contains("account-ada") && !requests.contains("\"tools/call\""), "{requests}");
        servers.shutdown().await;
    }
}

/// A restarted server knows none of its sessions. The call that finds out is not repeated; the next one works.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_session_is_replaced_at_the_next_call() {
    let endpoint = endpoint("well-behaved", Way::StaleAccounts).await;
    let (servers, runner, vault) = with_accounts(&endpoint, &[ECHO]).await;
    vault.set("ada", "account-ada");
    let ada = run(&runner, "ada", "ada");
    for outcome in [Outcome::ExecutionError, Outcome::Ok, Outcome::Ok] {
        let result = call(&ada, ECHO, r#"{"text":"x"}"#).await;
        assert_eq!(result.outcome(), outcome, "{:?}", result.detail());
    }
    let requests = endpoint.requests.lock().await.clone();
    let sent = |method: &str| {
        let requests = requests.iter().filter(|one| one.contains("bearer account-ada"));
        requests.filter(|one| one.contains(method)).count()
    };
    assert_eq!((sent("\"initialize\""), sent("\"tools/call\"")), (2, 3));
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_repeats_a_token_shows_it_to_nobody() {
    let endpoint = endpoint("well-behaved", Way::Repeats).await;
    let (names, silent) = (["mcp__s__refuse", "mcp__s__report", ECHO], "mcp__s__silent");
    let (servers, runner, vault) = with_accounts(&endpoint, &[&names[..], &[silent]].concat()).await;
    vault.set("ada", "account-ada-0123456789");
    for name in names {
        let result = call(&run(&runner, "ada", "ada"), name, r#"{"text":"x"}"#).await;
        let (shown, detail) = (result.to_model(), result.detail().unwrap_or_default());
        assert!(shown.contains("rejected: ") && shown.contains("[token]"), "{name}: {shown}");
        assert!(!format!("{result:?}{shown}{detail}").contains("0123456789"), "{name}: {shown} {detail}");
        // A result may contain the value of a header, such as the name of a team.
        assert_eq!(shown.contains("key-of-operator"), name == ECHO, "{name}: {shown}");
        assert_eq!(shown.contains("[header]"), name != ECHO, "{name}: {shown}");
    }
    // The reason of an HTTP status is for operators.
    let result = call(&run(&runner, "ada", "ada"), silent, "{}").await;
    let (shown, detail) = (result.to_model(), result.detail().unwrap_or_default());
    assert_eq!(result.outcome(), Outcome::ExecutionError, "{detail}");
    assert!(detail.contains("HTTP 400: rejected: ") && detail.contains("[token]"), "{detail}");
    assert!(
        !shown.contains("rejected") && !detail.contains("0123456789") && !detail.contains("operator-77"),
        "{detail}"
    );
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_its_server_alone() {
    let endpoint = endpoint("well-behaved", Way::RedirectsAccounts).await;
    let (_servers, runner, vault) = with_accounts(&endpoint, &[ECHO]).await;
    for token in ["account-CANARY-5f1d", "account-CANARY-5f1d\nx: y"] {
        vault.set("ada", token);
        let result = call(&run(&runner, "ada", "ada"), ECHO, r#"{"text":"x"}"#).await;
        assert_eq!(result.outcome(), Outcome::ExecutionError, "{:?}", result.detail());
        assert!(!result.detail().unwrap().contains("CANARY"), "{:?}", result.detail());
    }
    let requests = endpoint.requests.lock().await.clone();
    let with_token: Vec<_> = requests.iter().filter(|request| request.contains("account-")).collect();
    assert!(
        !with_token.is_empty() && with_token.iter().all(|request| request.starts_with("post /mcp ")),
        "{requests:?}"
    );
    let of_operator = requests.iter().filter(|request| request.contains("authorization: bearer tok\r\n"));
    assert!(of_operator.count() >= 2, "lists are read with the headers alone: {requests:?}");
}

/// Everything is listened to, at every level, on both sides of a connection with tokens.
#[tokio::test]
async fn a_token_is_in_no_trace() {
    let traced = Traced::default();
    let _guard = tracing::subscriber::set_default(traced.subscriber());
    let (tokens, vault) = (Issuer::default(), Issuer::default());
    tokens.set("CANARY-operator", "operator");
    tokens.set("CANARY-ada", "ada");
    vault.set("ada@tickets", "CANARY-ada");
    let (url, theirs) = tickets(&tokens).await;
    let server =
        || RemoteServer::url("s", &url).connection("tickets").header("authorization", "Bearer CANARY-operator");
    let servers = ToolSource::connect([server()]).await.unwrap();
    let runner = runner(&servers, vault.clone());
    let ada = run(&runner, "ada", "ada@tickets");
    let mut printed = format!("{servers:?} {:?} {runner:?} {ada:?} {:?}", server(), servers.tools());
    assert_eq!(call(&ada, NAME, "{}").await.outcome(), Outcome::Ok);
    // Refused by the server, and one that cannot be sent.
    tokens.remove("CANARY-ada");
    for token in ["CANARY-ada", "CANARY-ada\n"] {
        vault.set("ada@tickets", token);
        let refused = call(&ada, NAME, "{}").await;
        assert!(!refused.is_ok());
        let _ = write!(printed, "{refused:?} {:?} {}", refused.detail(), refused.to_model());
    }
    let closed = ToolSource::connect([RemoteServer::url("s", &url).header("authorization", "Bearer CANARY-stranger")]);
    let _ = write!(printed, "{:?}", closed.await.unwrap().notes());
    let verified = Verified::new(RunOptions::new().principal("ada"), RESOURCE, "2999-01-01T00:00:00Z".parse().unwrap());
    let authorization = authorization(&tokens);
    let _ =
        write!(printed, "{verified:?} {authorization:?} {:?}", HttpOptions::new().authorization(authorization.clone()));
    let _ = write!(printed, "{:?}", theirs.records(&RecordFilter::default()).await.unwrap());
    servers.shutdown().await;
    let traces = traced.text();
    assert!(traces.contains("a server is down") && traces.contains("rmcp"), "both sides were listened to");
    for (what, text) in [("a trace", &traces), ("what is printed", &printed)] {
        let at = text.find("CANARY").map(|at| text.get(at.saturating_sub(300)..at + 20));
        assert_eq!(at, None, "a token is in {what}");
    }
}
