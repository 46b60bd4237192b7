//! Servers that notify their subscribers of changed tools: on a subscription, or on the stream of a session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tests::modern::Modern;
use tool_runtime::mcp::serve::{HttpOptions, McpServer, Peer};
use tool_runtime::mcp::source::{RemoteServer, ToolSource};
use tool_runtime::{Outcome, RunOptions, ToolCatalog, ToolRunner};

use crate::serve::http::transport;
use crate::source::http::{Way, endpoint, source};
use crate::source::{NEVER, call, policy, run_under, tool};

const NAMES: [&str; 5] = ["mcp__s__add", "mcp__s__change", "mcp__s__hush", "mcp__s__die", "mcp__s__pay"];

/// The server as a process.
fn process() -> RemoteServer {
    RemoteServer::command("s", env!("CARGO_BIN_EXE_modern-mcp")).refresh(NEVER)
}

/// The server behind a URL.
async fn url(server: &Modern) -> RemoteServer {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = server.clone();
    let service = StreamableHttpService::<_, LocalSessionManager>::new(
        move || Ok(server.clone()),
        Arc::default(),
        StreamableHttpServerConfig::default(),
    );
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await });
    RemoteServer::url("s", url).refresh(NEVER)
}

/// Waits until a condition holds. The sentence is for readers of the test.
async fn until(_what: &str, is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The list was read as often as it had to be, and how often the server was discovered and listened to. One further
/// list belongs to a subscription that was acknowledged after the time that the first list waits for it.
fn once_for_each(server: &Modern, needed: usize, others: [usize; 2]) {
    let [discovered, listed, opened] = server.counts();
    assert!((needed..=needed + 1).contains(&listed), "{listed} lists, and {needed} were needed");
    assert_eq!([discovered, opened], others);
}

fn lists(servers: &ToolSource, raw: &str) -> bool {
    servers.tools().iter().any(|tool| tool.raw_name() == raw)
}

/// A tool that is added is discovered, and a tool that changes has drifted, during the same run and connection.
async fn changes_are_seen(servers: &ToolSource) {
    assert!(servers.notes().is_empty(), "{:?}", servers.notes());
    let pinned = policy(servers, &NAMES, "");
    let run = run_under(servers, pinned.clone());
    assert_eq!(call(&run, "mcp__s__pay", "{}").await.outcome(), Outcome::Ok);
    assert_eq!(call(&run, "mcp__s__add", "{}").await.outcome(), Outcome::Ok);
    until("a tool that was added is listed", || lists(servers, "late")).await;
    assert_eq!(tool(servers, "late").state(&pinned), "discovered");
    assert_eq!(call(&run, "mcp__s__late", "{}").await.outcome(), Outcome::Unavailable);
    let fresh = run_under(servers, pinned.clone());
    assert_eq!(call(&fresh, "mcp__s__late", "{}").await.outcome(), Outcome::PolicyDenied, "nothing enables it");

    assert_eq!(tool(servers, "pay").state(&pinned), "enabled");
    assert_eq!(call(&run, "mcp__s__change", "{}").await.outcome(), Outcome::Ok);
    until("a tool that was changed has drifted", || tool(servers, "pay").state(&pinned) == "drifted").await;
    let denied = call(&run, "mcp__s__pay", "{}").await;
    assert_eq!((denied.outcome(), denied.executed()), (Outcome::PolicyDenied, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_says_what_changed_and_is_asked_again_after_it_died() {
    let servers = ToolSource::connect([process()]).await.unwrap();
    changes_are_seen(&servers).await;
    let run = run_under(&servers, policy(&servers, &NAMES, ""));
    assert_eq!(call(&run, "mcp__s__die", "{}").await.outcome(), Outcome::OutcomeUnknown);
    // The server begins again, with its first tools.
    let added = call(&run, "mcp__s__add", "{}").await;
    assert_eq!(added.outcome(), Outcome::Ok, "{:?}", added.detail());
    until("a tool that was added is listed", || lists(&servers, "late")).await;
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_says_what_changed_and_is_asked_again_after_it_stopped() {
    let server = Modern::default();
    let servers = ToolSource::connect([url(&server).await]).await.unwrap();
    assert!(servers.notes().is_empty(), "{:?}", servers.notes());
    changes_are_seen(&servers).await;
    once_for_each(&server, 3, [1, 1]);

    // A change without a subscription is found when the subscription is open again.
    let run = run_under(&servers, policy(&servers, &NAMES, ""));
    assert_eq!(call(&run, "mcp__s__hush", "{}").await.outcome(), Outcome::Ok);
    until("a tool that was added in silence is listed", || lists(&servers, "quiet")).await;
    once_for_each(&server, 4, [1, 2]);
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_behind_a_url_says_what_changed() {
    let server = Modern::old();
    let servers = ToolSource::connect([url(&server).await]).await.unwrap();
    changes_are_seen(&servers).await;
    // It has no subscription of the other revision.
    once_for_each(&server, 3, [0, 0]);
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_one_hint_and_a_subscription_that_ends_is_opened_again_after_growing_waits() {
    let (endpoint, begun) = (endpoint("stateless-flood", Way::Events).await, Instant::now());
    let servers = ToolSource::connect([source(&endpoint).refresh(NEVER)]).await.unwrap();
    assert!(servers.notes().is_empty(), "{:?}", servers.notes());
    let count = async |method: &str| {
        let requests = endpoint.requests.lock().await;
        requests.iter().filter(|one| one.contains(&format!("mcp-method: {method}"))).count()
    };
    // The waits are no shorter than they should be, however slow the machine is.
    while count("subscriptions/listen").await < 3 || count("tools/list").await < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (listens, lists, passed) = (count("subscriptions/listen").await, count("tools/list").await, begun.elapsed());
    let opened = [0, 500, 1500, 3500, 7500, 15_500].iter().filter(|at| passed >= Duration::from_millis(**at)).count();
    assert!(listens <= opened, "{listens} after {passed:?}");
    assert!(lists as u64 <= passed.as_secs() + 2, "{lists} after {passed:?}: once in each second at most");
    servers.shutdown().await;
}

/// A client with the default handler of each message.
struct Guest;

impl ClientHandler for Guest {}

/// A server that passes on tools of another one announces their changes to subscribers that may see them.
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_is_passed_on() {
    let modern = Modern::default();
    let servers = ToolSource::connect([url(&modern).await]).await.unwrap();
    let catalog = ToolCatalog::builder().source(&servers).build().unwrap();
    let pinned = policy(&servers, &["mcp__s__pay", "mcp__s__hush"], "");
    let admit = |peer: &Peer<'_>| match peer.header("x-user")? {
        "bob" => Some(RunOptions::new().principal("bob").tools(["mcp__s__hush"])),
        who => Some(RunOptions::new().principal(who)),
    };
    let server = McpServer::builder(ToolRunner::builder(catalog, pinned).build().unwrap(), admit).build().unwrap();
    let (address, serving) = server.bind("127.0.0.1:0".parse().unwrap(), &HttpOptions::new()).await.unwrap();
    tokio::spawn(serving);
    let connected = async |user: &str| {
        let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let client = rmcp::service::serve_client_with_lifecycle(Guest, transport(address, user), mode);
        client.await.expect("a server")
    };
    let (bob, client) = (connected("bob").await, connected("ada").await);
    let filter = || SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().build();
    let mut heard_by_bob = bob.listen(filter()).await.expect("a subscription");
    let mut heard = client.listen(filter()).await.expect("a subscription");
    assert_eq!(heard.acknowledged(), &SubscriptionFilter::builder().tools_list_changed().build());
    let names = async || {
        let listed = client.list_tools(None).await.unwrap().tools;
        listed.into_iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["mcp__s__hush", "mcp__s__pay"]);
    // A tool that nobody here may see changes no list of a client, so there is one notice in all.
    modern.act("add");
    until("a tool that was added is listed", || lists(&servers, "late")).await;
    modern.act("change");
    let said = heard.next().await.unwrap();
    assert!(matches!(said, Some(ServerNotification::ToolListChangedNotification(_))), "{said:?}");
    assert_eq!(names().await, ["mcp__s__hush"]);
    server.close(Duration::from_secs(1)).await;
    assert!(!matches!(heard.next().await, Ok(Some(_))), "one notice for one change");
    assert!(!matches!(heard_by_bob.next().await, Ok(Some(_))), "he does not see the tool that changed");
}
