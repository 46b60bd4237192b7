//! Waiting calls when something is lost: the answer, the client, the process after its first write, or a race for the
//! same call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::Request;
use rmcp::model::{CallToolResult, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};
use tests::world::{HookAction, HookedStore};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tool_runtime::RunOptions;
use tool_runtime::mcp::serve::{Authenticator, HttpOptions, HttpService, McpServer, Peer};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{MemoryStore, RecordFilter, Store, StoreError};
use tool_runtime::testing::ManualClock;
use tool_runtime_sql::{SqlOptions, SqlStore};
use tower::ServiceExt as _;

use crate::serve::held::{
    Client, NOBODY, builder, letter, one_waiting, piped, piped_since_2026, post, posting, recorded, runner, sent,
    try_post, waiting, waits,
};
use crate::serve::http::{initialize, listening};
use crate::serve::rig::{admitted, request, text};

const HELD: &str = "[mcp]\nhold = \"1d\"\n";

/// Polls a future once, and returns its output if it is ready.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match Box::pin(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ready) => Some(ready),
        Poll::Pending => None,
    }
}

/// A store that keeps nothing more once a call waits in the one behind it, as if its process were killed then.
fn dies_when_a_call_waits(store: &Arc<MemoryStore>) -> HookedStore {
    let behind = Arc::clone(store);
    HookedStore::new(Arc::clone(store) as _, move |method| {
        let pending = now(async { behind.pending_calls(&RecordFilter::default()).await });
        match pending {
            Some(Ok(calls)) if !calls.is_empty() && matches!(method, "update" | "append") => {
                HookAction::Fail(StoreError::Unavailable("killed".into()))
            }
            _ => HookAction::Pass,
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_can_be_seen_can_be_decided_and_is_found_again() {
    let store = Arc::<MemoryStore>::default();
    let first = builder(dies_when_a_call_waits(&store), "").build().unwrap();
    let _ = letter(&piped(&first, NOBODY).await, "seen").await;
    let call = waiting(&*store).await.remove(0);
    // The decision comes before any server did more than let the call wait.
    post(&store, &call, ApprovalDecision::Approve).await;
    let second = builder(Arc::clone(&store), "").build().unwrap();
    let done = letter(&piped(&second, NOBODY).await, "seen").await.unwrap();
    assert_eq!((text(&done), sent("seen"), waiting(&*store).await.len()), ("sent at 1", 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_that_get_the_same_call_make_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let open = async || Arc::new(SqlStore::sqlite(&file, SqlOptions::new()).await.unwrap());
    let (one, two, watched) = (open().await, open().await, open().await);
    let served = [builder(one, "").build().unwrap(), builder(two, "").build().unwrap()];
    let (here, there) = (piped(&served[0], NOBODY).await, piped(&served[1], NOBODY).await);
    let over = AtomicBool::new(false);
    let watch = async {
        let mut most = 0;
        while !over.load(Ordering::Relaxed) {
            most = most.max(waiting(&*watched).await.len());
            tokio::task::yield_now().await;
        }
        most
    };
    let calls = async {
        for round in 0..12 {
            let name = format!("same {round}");
            let (one, two) = tokio::join!(letter(&here, &name), letter(&there, &name));
            waits(&one.unwrap());
            waits(&two.unwrap());
            let call = one_waiting(&*watched).await;
            post(&watched, &call, ApprovalDecision::Approve).await;
            let done = letter(if round % 2 == 0 { &here } else { &there }, &name).await.unwrap();
            assert_eq!((text(&done), sent(&name)), ("sent at 1", 1));
            while !waiting(&*watched).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        over.store(true, Ordering::Relaxed);
    };
    let (most, ()) = tokio::join!(watch, calls);
    assert_eq!(most, 1, "there never are two");
}

/// A client over HTTP that writes its requests itself, and its session.
async fn session(address: std::net::SocketAddr) -> String {
    let (_, begun) =
        crate::serve::http::raw(address, &format!("Host: {address}\r\nx-user: ada\r\n"), &initialize()).await;
    let id =
        begun.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
    let id = id.unwrap_or_else(|| panic!("{begun}"));
    let head =
        format!("Host: {address}\r\nx-user: ada\r\nMcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    crate::serve::http::raw(address, &head, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    head
}

fn call_of(name: &str) -> String {
    let params = json!({"name": "letters__send", "arguments": {"text": name}});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
}

async fn send(stream: &mut TcpStream, head: &str, body: &str) {
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// A client at two pipes that writes its lines itself: those of the server come out of the first, which holds this many
/// bytes.
async fn pipes(server: &McpServer, name: &str, bytes: usize) -> (DuplexStream, DuplexStream) {
    let ((out, write), (mut into, read)) = (tokio::io::duplex(bytes), tokio::io::duplex(64 * 1024));
    let server = server.clone();
    tokio::spawn(async move { server.stream(read, write).await });
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let lines = format!("{}\n{initialized}\n{}\n", initialize(), call_of(name));
    into.write_all(lines.as_bytes()).await.unwrap();
    (out, into)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_client_went_away_waits_for_the_same_call() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), HELD).build().unwrap();
    let address = listening(&served, &HttpOptions::new()).await;
    for way in ["cancelled", "pipe", "session", "posted"] {
        match way {
            "cancelled" => {
                let client = piped(&served, NOBODY).await;
                let call = rmcp::model::CallToolRequest::new(request("letters__send", json!({"text": way})));
                let call = ClientRequest::CallToolRequest(call);
                let handle = client.send_cancellable_request(call, PeerRequestOptions::no_options()).await.unwrap();
                one_waiting(&*store).await;
                handle.cancel(None).await.unwrap();
            }
            "pipe" => {
                let ends = pipes(&served, way, 64 * 1024).await;
                one_waiting(&*store).await;
                drop(ends);
            }
            "session" => {
                let head = session(address).await;
                let mut stream = TcpStream::connect(address).await.unwrap();
                send(&mut stream, &head, &call_of(way)).await;
                one_waiting(&*store).await;
                drop(stream);
            }
            _ => {
                let client = posting(&served, "ada", NOBODY).await;
                let asking = tokio::spawn(async move { letter(&client, way).await });
                one_waiting(&*store).await;
                asking.abort();
            }
        }
        let call = one_waiting(&*store).await;
        post(&store, &call, ApprovalDecision::Approve).await;
        let done = letter(&piped(&served, NOBODY).await, way).await.unwrap();
        assert_eq!((text(&done), sent(way)), ("sent at 1", 1), "{way}");
        assert!(waiting(&*store).await.is_empty(), "{way}");
    }
    assert_eq!(recorded(&*store).await, vec![json!(["letters__send", "ok"]); 4]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_did_not_leave_is_told_to_the_same_call_once() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), HELD).build().unwrap();
    let (mut out, into) = pipes(&served, "lost", 64 * 1024).await;
    let call = one_waiting(&*store).await;
    // Its client still speaks, and reads nothing more: the answer cannot be written.
    let mut begun = [0; 16];
    out.read_exact(&mut begun).await.unwrap();
    drop(out);
    post(&store, &call, ApprovalDecision::Approve).await;
    while sent("lost") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let client = piped(&served, NOBODY).await;
    let done = letter(&client, "lost").await.unwrap();
    assert_eq!((text(&done), sent("lost")), ("sent at 1", 1), "it ran once, and its end is told");
    drop(into);
    // That one arrived, so the next is another call.
    let next = tokio::spawn(async move { letter(&client, "lost").await });
    let call = one_waiting(&*store).await;
    post(&store, &call, ApprovalDecision::Deny(None)).await;
    assert!(text(&next.await.unwrap().unwrap()).contains("approval_denied"));
    assert_eq!(sent("lost"), 1);
}

/// The first request has taken the outcome, and its answer is not written before the test reads it.
#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_being_sent_goes_to_no_other_request() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), HELD).build().unwrap();
    let client = Arc::new(piped(&served, NOBODY).await);
    for has_arrived in [true, false] {
        let name = format!("narrow {has_arrived}");
        let (out, _into) = pipes(&served, &name, 16).await;
        let mut lines = BufReader::new(out).lines();
        lines.next_line().await.unwrap().expect("a handshake");
        let call = one_waiting(&*store).await;
        post(&store, &call, ApprovalDecision::Approve).await;
        while sent(&name) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let refused = letter(&client, &name).await.expect_err("another request is getting it");
        assert!(refused.to_string().contains("Another request"), "{refused}");
        if has_arrived {
            let line = lines.next_line().await.unwrap().unwrap();
            assert!(line.contains("sent at 1"), "{line}");
        } else {
            drop(lines);
            assert_eq!(text(&letter(&client, &name).await.unwrap()), "sent at 1", "it was given back");
        }
        let next = decided_late(&store, &client, (&name, 0), ApprovalDecision::Deny(None)).await;
        assert!(text(&next).contains("approval_denied") && sent(&name) == 1, "{next:?}");
    }
}

/// Posts a call of revision 2026-07-28. Its answer is sent when the test reads the body.
async fn answered(service: HttpService, name: String) -> Body {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"_meta": meta, "name": "letters__send", "arguments": {"text": name}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = Request::post("/mcp")
        .header("host", "127.0.0.1")
        .header("x-user", "ada")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "letters__send");
    let response = service.oneshot(request.body(Body::from(message.to_string())).unwrap()).await.unwrap();
    Body::new(response.into_body())
}

async fn read(body: Body) -> String {
    String::from_utf8(axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_being_sent_over_http_goes_to_no_other_request() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), HELD).build().unwrap();
    let client = Arc::new(piped(&served, NOBODY).await);
    let service = served.http(&HttpOptions::new());
    for has_arrived in [true, false] {
        let name = format!("unread {has_arrived}");
        let first = tokio::spawn(answered(service.clone(), name.clone()));
        let call = one_waiting(&*store).await;
        post(&store, &call, ApprovalDecision::Approve).await;
        let first = first.await.unwrap();
        while sent(&name) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let refused = read(answered(service.clone(), name.clone()).await).await;
        assert!(refused.contains("Another request"), "{refused}");
        if has_arrived {
            let done = read(first).await;
            assert!(done.contains("sent at 1"), "{done}");
        } else {
            drop(first);
            let done = read(answered(service.clone(), name.clone()).await).await;
            assert!(done.contains("sent at 1"), "it was given back: {done}");
        }
        let next = decided_late(&store, &client, (&name, 0), ApprovalDecision::Deny(None)).await;
        assert!(text(&next).contains("approval_denied") && sent(&name) == 1, "{next:?}");
    }
}

/// Each read of the store lets the other request continue.
#[tokio::test(start_paused = true)]
async fn of_two_requests_for_one_outcome_one_gets_it() {
    let behind = Arc::<MemoryStore>::default();
    let hook = |method| if method == "list" { HookAction::Late } else { HookAction::Pass };
    let store = Arc::new(HookedStore::new(Arc::clone(&behind) as _, hook));
    let served = builder(Arc::clone(&store), "").build().unwrap();
    let clients = [piped(&served, NOBODY).await, posting(&served, "ada", NOBODY).await];
    waits(&letter(&clients[0], "of two").await.unwrap());
    let call = one_waiting(&*behind).await;
    post(&store, &call, ApprovalDecision::Approve).await;
    let (out, _into) = pipes(&served, "of two", 16).await;
    let mut lines = BufReader::new(out).lines();
    lines.next_line().await.unwrap().expect("a handshake");
    while sent("of two") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Its client goes away.
    drop(lines);
    let (one, two) = tokio::join!(letter(&clients[0], "of two"), letter(&clients[1], "of two"));
    let (one, two) = (one.unwrap(), two.unwrap());
    let (got, waiting) = if one.is_error == Some(false) { (one, two) } else { (two, one) };
    assert_eq!(text(&got), "sent at 1");
    waits(&waiting);
    assert_ne!(one_waiting(&*behind).await.call_id, call.call_id, "a new call");
}

/// The id of a call that no request repeats any more cannot be removed from the store for a while.
#[tokio::test(start_paused = true)]
async fn a_delivery_that_cannot_be_stored_is_known_to_its_server() {
    let (behind, is_down) = (Arc::<MemoryStore>::default(), Arc::new(AtomicBool::new(false)));
    let down = Arc::clone(&is_down);
    let store = HookedStore::new(Arc::clone(&behind) as _, |_| HookAction::Pass).refusing(move |keys| {
        let is_removal = matches!(keys, [key] if key.scope().starts_with("asked_"));
        (is_removal && down.load(Ordering::Relaxed)).then(|| StoreError::Unavailable("down".into()))
    });
    let served = builder(store, "").build().unwrap();
    let client = piped(&served, NOBODY).await;
    waits(&letter(&client, "unmarked").await.unwrap());
    post(&behind, &one_waiting(&*behind).await, ApprovalDecision::Approve).await;
    is_down.store(true, Ordering::Relaxed);
    assert_eq!(text(&letter(&client, "unmarked").await.unwrap()), "sent at 1");
    tokio::time::sleep(Duration::from_secs(10)).await;
    letter(&client, "unmarked").await.expect_err("a new call cannot be entered yet");
    is_down.store(false, Ordering::Relaxed);
    waits(&letter(&client, "unmarked").await.unwrap());
    assert_eq!(sent("unmarked"), 1);
}

/// A request has read the id of the call. Before it continues, another one gets the result, and the call is removed.
#[tokio::test(start_paused = true)]
async fn a_request_that_comes_during_the_delivery_is_a_new_call() {
    let (behind, is_armed) = (Arc::<MemoryStore>::default(), Arc::new(AtomicBool::new(false)));
    let (arrives, door) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (armed, arrived, opens) = (Arc::clone(&is_armed), Arc::clone(&arrives), Arc::clone(&door));
    let store = HookedStore::new(Arc::clone(&behind) as _, |_| HookAction::Pass).holding(move |query| {
        let is_id = query.scope.as_ref().is_some_and(|scope| scope.starts_with("asked_"));
        if !is_id || !armed.swap(false, Ordering::Relaxed) {
            return None;
        }
        let (arrived, opens) = (Arc::clone(&arrived), Arc::clone(&opens));
        Some(Box::pin(async move {
            arrived.notify_one();
            opens.notified().await;
        }))
    });
    let served = builder(store, "").build().unwrap();
    let client = Arc::new(piped(&served, NOBODY).await);
    // Another call keeps the run.
    waits(&letter(&client, "stays").await.unwrap());
    let stays = one_waiting(&*behind).await;
    waits(&letter(&client, "removed").await.unwrap());
    let call = waiting(&*behind).await.into_iter().find(|call| call.call_id != stays.call_id).unwrap();
    assert_eq!(call.run_id, stays.run_id);
    post(&behind, &call, ApprovalDecision::Approve).await;
    is_armed.store(true, Ordering::Relaxed);
    let asking = Arc::clone(&client);
    let second = tokio::spawn(async move { letter(&asking, "removed").await });
    arrives.notified().await;
    assert_eq!(text(&letter(&client, "removed").await.unwrap()), "sent at 1");
    // The task runner removes the call.
    tokio::time::sleep(Duration::from_secs(10)).await;
    door.notify_one();
    waits(&second.await.unwrap().unwrap());
    assert_eq!(sent("removed"), 1);
}

/// A call that is decided on after its client has waited for some seconds.
async fn decided_late(
    store: &Arc<MemoryStore>,
    client: &Arc<Client>,
    (name, seconds): (&str, u64),
    decision: ApprovalDecision,
) -> CallToolResult {
    let (asking, text) = (Arc::clone(client), name.to_owned());
    let mut asking = tokio::spawn(async move { letter(&asking, &text).await });
    let call = tokio::select! {
        call = one_waiting(&**store) => call,
        ended = &mut asking => panic!("{name} did not wait: {ended:?}"),
    };
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    post(store, &call, decision).await;
    asking.await.unwrap().unwrap()
}

fn is_repeated(result: &CallToolResult) -> bool {
    let mut texts = result.content.iter().rev().filter_map(|block| block.as_text());
    texts.next().is_some_and(|text| text.text.contains("did not run a second time"))
}

/// A client of an older revision can time out without notice, and ignore the answer.
#[tokio::test(start_paused = true)]
async fn a_late_answer_is_told_to_the_same_call_once_more() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), HELD).build().unwrap();
    let (old, new) = (Arc::new(piped(&served, NOBODY).await), Arc::new(piped_since_2026(&served, NOBODY).await));
    // The server reads a decision within a second.
    for (client, seconds, is_told_again) in [(&old, 5, true), (&old, 2, false), (&new, 60, false)] {
        for (decision, expected) in
            [(ApprovalDecision::Approve, "sent at 1"), (ApprovalDecision::Deny(None), "approval_denied")]
        {
            let name = format!("late {expected} {seconds}");
            let times = usize::from(expected == "sent at 1");
            let first = decided_late(&store, client, (&name, seconds), decision).await;
            assert!(text(&first).contains(expected) && !is_repeated(&first), "{name}: {first:?}");
            if is_told_again {
                let again = letter(client, &name).await.unwrap();
                assert!(text(&again).contains(expected) && is_repeated(&again), "{name}: {again:?}");
                assert!(waiting(&*store).await.is_empty());
            }
            assert_eq!(sent(&name), times);
            // Its client has the result now, so the same call is a new one.
            let next = decided_late(&store, client, (&name, 0), ApprovalDecision::Deny(None)).await;
            assert!(text(&next).contains("approval_denied") && !is_repeated(&next), "{name}: {next:?}");
            assert_eq!(sent(&name), times);
        }
    }
    let count = recorded(&*store).await.len();
    assert_eq!(count, 12, "one record for each call");
}

/// Admits each client after five seconds.
struct Slow;

#[async_trait]
impl Authenticator for Slow {
    async fn authenticate(&self, peer: &Peer<'_>) -> Option<RunOptions> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        admitted(peer)
    }
}

/// A client waits from the moment at which it sends its request, not from the moment at which its call begins to wait.
#[tokio::test(start_paused = true)]
async fn the_time_before_a_call_waits_counts_as_well() {
    let store = Arc::<MemoryStore>::default();
    let served = McpServer::builder(runner(Arc::clone(&store), HELD), Slow).build().unwrap();
    let client = Arc::new(piped(&served, NOBODY).await);
    let first = decided_late(&store, &client, ("slow", 0), ApprovalDecision::Approve).await;
    let again = letter(&client, "slow").await.unwrap();
    assert!(!is_repeated(&first) && text(&again).contains("sent at 1") && is_repeated(&again), "{again:?}");
    assert_eq!(sent("slow"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_told_again_for_ten_minutes_at_every_server() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let serve = || builder(Arc::clone(&store), HELD).build().unwrap();
    for (minutes, is_told_again) in [(9, true), (11, false)] {
        let name = format!("told {minutes}");
        let served = serve();
        let client = Arc::new(piped(&served, NOBODY).await);
        let first = decided_late(&store, &client, (&name, 30), ApprovalDecision::Approve).await;
        assert_eq!((text(&first), is_repeated(&first)), ("sent at 1", false));
        // A server that closes stores the time of the answer first.
        served.close(Duration::from_secs(1)).await;
        clock.advance(Duration::from_secs(minutes * 60));
        let served = serve();
        let client = Arc::new(piped(&served, NOBODY).await);
        if is_told_again {
            let again = letter(&client, &name).await.unwrap();
            assert!(text(&again) == "sent at 1" && is_repeated(&again), "{again:?}");
        } else {
            let next = decided_late(&store, &client, (&name, 0), ApprovalDecision::Deny(None)).await;
            assert!(text(&next).contains("approval_denied") && !is_repeated(&next), "{next:?}");
        }
        assert_eq!(sent(&name), 1);
        served.close(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_decisions_the_first_counts_however_they_come() {
    let own = "[approvals]\nown_calls = true\n";
    for (first, expected) in
        [(ApprovalDecision::Approve, "sent at 1"), (ApprovalDecision::Deny(None), "approval_denied")]
    {
        let store = Arc::<MemoryStore>::default();
        let served = builder(Arc::clone(&store), &format!("{own}{HELD}")).ask_clients(true).build().unwrap();
        // The client answers the question in the middle of its request, after another decision.
        let yes = || Some(json!({"approve": true}));
        let clients = [piped(&served, yes()).await, posting(&served, "ada", yes()).await];
        for (at, client) in clients.into_iter().enumerate() {
            let name = format!("twice {expected} {at}");
            let (before, decision) = (Arc::clone(&store), first.clone());
            *client.service().before.lock().unwrap() = Some(Box::pin(async move {
                let call = one_waiting(&*before).await;
                post(&before, &call, decision.clone()).await;
                let twice = try_post(&before, &call, ApprovalDecision::Approve).await;
                assert!(matches!(twice, Err(ResumeError::NotWaiting(_))), "{twice:?}");
            }));
            let done = letter(&client, &name).await.unwrap();
            assert!(text(&done).contains(expected), "{done:?}");
            assert_eq!(sent(&name), usize::from(expected == "sent at 1"));
            assert!(waiting(&*store).await.is_empty());
        }
        let code = if expected == "sent at 1" { "ok" } else { expected };
        assert_eq!(recorded(&*store).await, vec![json!(["letters__send", code]); 2], "one record each");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_recorded_does_not_run() {
    let (behind, is_down) = (Arc::<MemoryStore>::default(), Arc::new(AtomicBool::new(false)));
    let down = Arc::clone(&is_down);
    let store = Arc::new(HookedStore::new(Arc::clone(&behind) as _, move |method| {
        if method == "records" && down.load(Ordering::Relaxed) {
            HookAction::Fail(StoreError::Unavailable("the table is gone".into()))
        } else {
            HookAction::Pass
        }
    }));
    let served = builder(Arc::clone(&store), "[records]\nrequired = true\n").build().unwrap();
    for (client, name) in [(piped(&served, NOBODY).await, "unrecorded"), (posting(&served, "ada", NOBODY).await, "not")]
    {
        is_down.store(false, Ordering::Relaxed);
        waits(&letter(&client, name).await.unwrap());
        let call = one_waiting(&*behind).await;
        post(&store, &call, ApprovalDecision::Approve).await;
        is_down.store(true, Ordering::Relaxed);
        let read = client.call_tool(request("notes__read", json!({}))).await.unwrap();
        let said: Value = serde_json::from_str(text(&read)).unwrap();
        assert_eq!((read.is_error, &said["errorCode"]), (Some(true), &json!("cancelled")), "{said}");
        let refused = letter(&client, name).await;
        assert!(refused.is_err() || refused.unwrap().is_error == Some(true));
        assert_eq!(sent(name), 0, "approved, and did not run");
    }
}
