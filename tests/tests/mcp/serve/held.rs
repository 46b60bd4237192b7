//! Calls that wait, for clients that do not support tasks: the server holds the request, and a repeated call finds the
//! waiting one.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolResult, ClientCapabilities, ClientConfig, ClientRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, PeerRequestOptions, RequestContext, RunningService, ServiceError,
    ServiceExt as _,
};
use serde_json::{Value, json};
use tests::world::{HookAction, HookedStore};
use tokio::io::DuplexStream;
use tokio::sync::Notify;
use tool_runtime::agent::Input;
use tool_runtime::call::Decider;
use tool_runtime::capability::{ConnectionId, Elicit};
use tool_runtime::mcp::serve::{HttpOptions, McpServer, McpServerBuilder, Peer};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{
    DecisionKind, DecisionRecord, DocumentKind, MemoryStore, PendingCall, Query, RecordFilter, Store,
};
use tool_runtime::testing::ManualClock;
use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::serve::http::{listening, transport};
use crate::serve::rig::{admitted, outcomes, request, text};

/// How often each letter was sent.
static SENT: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

pub(crate) fn sent(text: &str) -> usize {
    SENT.lock().unwrap().get(text).copied().unwrap_or_default()
}

/// Sends a letter.
#[tool(name = "letters__send", effect = external_side_effect, redact = ["$"])]
pub(crate) fn send(
    /// The text.
    text: String,
    /// How fast.
    #[arg(default = 1)]
    speed: u8,
) -> Result<String, ToolError> {
    *SENT.lock().unwrap().entry(text).or_default() += 1;
    Ok(format!("sent at {speed}"))
}

/// Asks for a name.
#[tool(name = "tables__book", effect = external_side_effect, redact = ["$"])]
async fn book(elicit: &dyn Elicit) -> Result<String, ToolError> {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let answer = elicit.ask("In which name?", &form).await.map_err(|_| ToolError::code("no_name"))?;
    Ok(answer["name"].as_str().unwrap_or_default().to_owned())
}

/// Reads nothing.
#[tool(name = "notes__read", effect = read_only, redact = ["$"])]
pub(crate) fn read() -> Result<u8, ToolError> {
    Ok(1)
}

const POLICY: &str = r#"
allowed_tools = ["letters__send", "tables__book", "notes__read"]
require_approval_for_tools = ["letters__send"]
"#;

pub(crate) fn builder(store: impl Store + 'static, more: &str) -> McpServerBuilder {
    McpServer::builder(runner(store, more), admitted)
}

pub(crate) fn runner(store: impl Store + 'static, more: &str) -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<send>().tool::<book>().tool::<read>().build().unwrap();
    let policy = ToolPolicy::from_toml(&format!("{POLICY}{more}")).unwrap();
    ToolRunner::builder(catalog, policy).approvals(true).store(store).build().unwrap()
}

/// The action of a client before it answers.
pub(crate) type Before = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A client that does not support tasks. It fills in forms with `answers`, and keeps the reports of progress.
#[derive(Clone)]
pub(crate) struct Plain {
    version: ProtocolVersion,
    answers: Option<Value>,
    pub(crate) told: Arc<Mutex<Vec<f64>>>,
    /// The action before it answers.
    pub(crate) before: Arc<Mutex<Option<Before>>>,
}

pub(crate) type Client = RunningService<RoleClient, Plain>;

pub(crate) const NOBODY: Option<Value> = None;

impl ClientHandler for Plain {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.answers.is_some() {
            let mut modes = ElicitationCapability::default();
            modes.form = Some(FormElicitationCapability::default());
            capabilities.elicitation = Some(modes);
        }
        ClientConfig::new(capabilities, Implementation::new("plain", "1")).with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let before = self.before.lock().unwrap().take();
        if let Some(before) = before {
            before.await;
        }
        Ok(match &self.answers {
            Some(Value::Null) | None => ElicitResult::new(ElicitationAction::Decline),
            Some(answers) => ElicitResult::new(ElicitationAction::Accept).with_content(answers.clone()),
        })
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.told.lock().unwrap().push(report.progress);
    }
}

impl Plain {
    fn of(version: ProtocolVersion, answers: Option<Value>) -> Self {
        Self { version, answers, told: Arc::default(), before: Arc::default() }
    }
}

/// A pipe to a server.
fn pipe(server: &McpServer) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let server = server.clone();
    tokio::spawn(async move { server.stream(read, write).await });
    ours
}

/// The lifecycle of a client of 2026-07-28.
fn discovers() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// A client of 2025-11-25 at a pipe.
pub(crate) async fn piped(server: &McpServer, answers: Option<Value>) -> Client {
    Plain::of(ProtocolVersion::V_2025_11_25, answers).serve(pipe(server)).await.expect("a handshake")
}

/// A client of 2026-07-28 at a pipe.
pub(crate) async fn piped_since_2026(server: &McpServer, answers: Option<Value>) -> Client {
    let plain = Plain::of(ProtocolVersion::V_2026_07_28, answers);
    rmcp::service::serve_client_with_lifecycle(plain, pipe(server), discovers()).await.expect("a server")
}

/// A client of 2026-07-28 over HTTP.
pub(crate) async fn posting(server: &McpServer, user: &str, answers: Option<Value>) -> Client {
    let address = listening(server, &HttpOptions::new()).await;
    let plain = Plain::of(ProtocolVersion::V_2026_07_28, answers);
    rmcp::service::serve_client_with_lifecycle(plain, transport(address, user), discovers()).await.expect("a server")
}

pub(crate) async fn letter(client: &Client, text: &str) -> Result<CallToolResult, ServiceError> {
    client.call_tool(request("letters__send", json!({"text": text}))).await
}

pub(crate) async fn waiting(store: &dyn Store) -> Vec<PendingCall> {
    tests::pending_calls(store, &RecordFilter::default()).await
}

/// The one call that waits, once it does.
pub(crate) async fn one_waiting(store: &dyn Store) -> PendingCall {
    loop {
        let waits = waiting(store).await;
        if let [call] = &waits[..] {
            return call.clone();
        }
        assert!(waits.len() < 2, "{waits:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn post(store: &Arc<impl Store + 'static>, call: &PendingCall, decision: ApprovalDecision) {
    try_post(store, call, decision).await.unwrap();
}

pub(crate) async fn try_post(
    store: &Arc<impl Store + 'static>,
    call: &PendingCall,
    decision: ApprovalDecision,
) -> Result<(), ResumeError> {
    let decider = Decider::new("grace").tenant("acme");
    let input = Input::new().decide(&call.question(), decision, &decider);
    tests::queue(Arc::clone(store)).post(&call.run_id, Some("acme"), &input).await
}

pub(crate) async fn recorded(store: &dyn Store) -> Vec<Value> {
    outcomes(&store.calls(&RecordFilter::default()).await.unwrap())
}

#[track_caller]
pub(crate) fn waits(result: &CallToolResult) {
    let said: Value = serde_json::from_str(text(result)).unwrap();
    assert_eq!((result.is_error, &said["errorCode"]), (Some(true), &json!("approval_required")));
    assert!(said["message"].as_str().unwrap().contains("Make the same call again"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_again_gets_what_was_decided() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "").build().unwrap();
    // These clients cancel a request before they stop waiting, so the server sends even a late answer only once.
    let clients = [piped_since_2026(&served, NOBODY).await, posting(&served, "ada", NOBODY).await];
    for (client, name) in clients.into_iter().zip(["again by pipe", "again by HTTP"]) {
        waits(&letter(&client, name).await.unwrap());
        let call = one_waiting(&*store).await;
        // It joins the call that waits, however its arguments are ordered.
        waits(&letter(&client, name).await.unwrap());
        assert_eq!(one_waiting(&*store).await.call_id, call.call_id);
        // Twice, which decides once; and nothing happens before the client asks again.
        post(&store, &call, ApprovalDecision::Approve).await;
        let twice = try_post(&store, &call, ApprovalDecision::Approve).await;
        assert!(matches!(twice, Err(ResumeError::NotWaiting(_))), "{twice:?}");
        assert_eq!(sent(name), 0);
        let done = letter(&client, name).await.unwrap();
        assert_eq!((done.is_error, text(&done), sent(name)), (Some(false), "sent at 1", 1));
        assert!(waiting(&*store).await.is_empty());
        // The same call once more is a new call.
        waits(&letter(&client, name).await.unwrap());
        let next = one_waiting(&*store).await;
        assert_ne!(next.call_id, call.call_id);
        post(&store, &next, ApprovalDecision::Deny(Some("Once is enough.".to_owned()))).await;
        let denied = letter(&client, name).await.unwrap();
        assert!(denied.is_error == Some(true) && text(&denied).contains("Once is enough."), "{denied:?}");
        assert_eq!(sent(name), 1);
    }
    let expected = [json!(["letters__send", "ok"]), json!(["letters__send", "approval_denied"])];
    assert_eq!(recorded(&*store).await, [expected.clone(), expected].concat(), "one record for each call");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_held_until_somebody_decides() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "[mcp]\nhold = \"1d\"").build().unwrap();
    let clients = [piped(&served, NOBODY).await, piped_since_2026(&served, NOBODY).await];
    let decide = async {
        let call = one_waiting(&*store).await;
        // Each has a report of progress, so both are held.
        while clients.iter().any(|client| client.service().told.lock().unwrap().is_empty()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        post(&store, &call, ApprovalDecision::Approve).await;
    };
    let (first, second, ()) = tokio::join!(letter(&clients[0], "held"), letter(&clients[1], "held"), decide);
    for done in [first.unwrap(), second.unwrap()] {
        assert_eq!(text(&done), "sent at 1");
    }
    assert_eq!(sent("held"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_held_with_progress_and_not_for_ever() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "[mcp]\nhold = \"1m\"").build().unwrap();
    let client = piped(&served, NOBODY).await;
    let began = tokio::time::Instant::now();
    waits(&letter(&client, "patience").await.unwrap());
    assert_eq!(began.elapsed().as_secs(), 60);
    let told = client.service().told.lock().unwrap().clone();
    assert!(told.len() >= 11 && told.is_sorted_by(|one, next| one < next), "{told:?}");
    // A server that closes no longer holds requests.
    let (closed, ()) = tokio::join!(letter(&client, "patience"), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        served.close(Duration::from_secs(1)).await;
    });
    waits(&closed.unwrap());
    assert_eq!(sent("patience"), 0);
}

/// A decision arrives at the last moment, and the store is slow.
#[tokio::test(start_paused = true)]
async fn a_late_decision_has_time_to_be_carried_out() {
    let (behind, is_slow) = (Arc::<MemoryStore>::default(), Arc::new(AtomicBool::new(false)));
    let slow = Arc::clone(&is_slow);
    let store = HookedStore::new(Arc::clone(&behind) as _, move |method| match method {
        "update" if slow.load(Ordering::Relaxed) => HookAction::Slow(Duration::from_secs(2)),
        _ => HookAction::Pass,
    });
    let served = builder(store, "[mcp]\nhold = \"1m\"").build().unwrap();
    let client = piped(&served, NOBODY).await;
    let decide = async {
        let call = one_waiting(&*behind).await;
        tokio::time::sleep(Duration::from_millis(59_900)).await;
        is_slow.store(true, Ordering::Relaxed);
        post(&behind, &call, ApprovalDecision::Approve).await;
    };
    let (done, ()) = tokio::join!(letter(&client, "last moment"), decide);
    assert_eq!((text(&done.unwrap()), sent("last moment")), ("sent at 1", 1));
}

/// The tool `press__print` runs, and what lets it end.
static PRINTS: Notify = Notify::const_new();
static PRINTED: Notify = Notify::const_new();

/// Prints slowly.
#[tool(name = "press__print", effect = external_side_effect, redact = ["$"])]
async fn print() -> Result<String, ToolError> {
    PRINTS.notify_one();
    PRINTED.notified().await;
    Ok("printed".to_owned())
}

/// Eight requests of a call can be held. A further one does not learn that its call has not run.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_held_learns_that_its_call_runs() {
    let store = Arc::<MemoryStore>::default();
    let catalog = ToolCatalog::builder().tool::<print>().build().unwrap();
    let policy = "allowed_tools = ['press__print']\nrequire_approval_for_tools = ['press__print']\n";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
    let runner = runner.store(Arc::clone(&store)).build().unwrap();
    let served = McpServer::builder(runner, admitted).build().unwrap();
    let client = Arc::new(piped_since_2026(&served, NOBODY).await);
    let asked = || {
        let client = Arc::clone(&client);
        async move { client.call_tool(request("press__print", json!({}))).await.unwrap() }
    };
    waits(&asked().await);
    post(&store, &one_waiting(&*store).await, ApprovalDecision::Approve).await;
    let mut requests = tokio::task::JoinSet::new();
    requests.spawn(asked());
    PRINTS.notified().await;
    (0..8).for_each(|_| drop(requests.spawn(asked())));
    let further = requests.join_next().await.unwrap().unwrap();
    let said: Value = serde_json::from_str(text(&further)).unwrap();
    assert_eq!((further.is_error, &said["errorCode"]), (Some(true), &json!("in_progress")));
    assert!(said["message"].as_str().unwrap().starts_with("The call is running. Make the same call again"), "{said}");
    PRINTED.notify_one();
    assert!(requests.join_all().await.iter().all(|printed| text(printed) == "printed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_whose_client_left_does_not_run() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "[mcp]\nhold = \"1d\"").build().unwrap();
    let client = piped(&served, NOBODY).await;
    let params = ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(request(
        "letters__send",
        json!({"text": "gone"}),
    )));
    let handle = client.send_cancellable_request(params, PeerRequestOptions::no_options()).await.unwrap();
    let call = one_waiting(&*store).await;
    handle.cancel(None).await.unwrap();
    client.cancel().await.unwrap();
    post(&store, &call, ApprovalDecision::Approve).await;
    // Others are served meanwhile, and strangers do not get it: not another principal, not another tool or argument.
    let bob = posting(&served, "bob", NOBODY).await;
    assert_eq!(text(&bob.call_tool(request("notes__read", json!({}))).await.unwrap()), "1");
    let theirs = tokio::spawn(async move { letter(&bob, "gone").await });
    while waiting(&*store).await.len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(sent("gone"), 0);
    theirs.abort();
    let back = piped(&served, NOBODY).await;
    assert_eq!(text(&letter(&back, "gone").await.unwrap()), "sent at 1");
    assert_eq!((sent("gone"), waiting(&*store).await.len()), (1, 1));
}

/// One command approves two calls, and only one of their clients comes back.
#[tokio::test(flavor = "multi_thread")]
async fn of_calls_that_are_decided_together_each_waits_for_its_own_client() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "").build().unwrap();
    let client = piped(&served, NOBODY).await;
    for text in ["together 1", "together 2"] {
        waits(&letter(&client, text).await.unwrap());
    }
    let decisions: Vec<_> = waiting(&*store)
        .await
        .iter()
        .map(|call| (Arc::clone(&call.run_id), call.question(), ApprovalDecision::Approve))
        .collect();
    let queue = tests::queue(Arc::clone(&store));
    let posted = queue.decide_all(&decisions, &Decider::new("grace").tenant("acme")).await.unwrap();
    assert_eq!(posted.len(), 2);
    assert_eq!(text(&letter(&client, "together 2").await.unwrap()), "sent at 1");
    assert_eq!((sent("together 1"), sent("together 2"), waiting(&*store).await.len()), (0, 1, 1));
    assert_eq!(text(&letter(&client, "together 1").await.unwrap()), "sent at 1");
    assert_eq!((sent("together 1"), waiting(&*store).await.len()), (1, 0));
}

/// An approval waits for its client until the call expires: it has a record, and nothing of it stays.
#[tokio::test]
async fn an_approval_whose_client_never_comes_back_has_a_record() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let served = builder(Arc::clone(&store), "").build().unwrap();
    let client = piped(&served, NOBODY).await;
    waits(&letter(&client, "never back").await.unwrap());
    let call = one_waiting(&*store).await;
    post(&store, &call, ApprovalDecision::Approve).await;
    clock.advance(Duration::from_hours(48));
    // A write shows the server the new time, and the next call wakes it.
    drop(letter(&client, "another").await);
    waits(&letter(&client, "one more").await.unwrap());
    let decided = async || {
        let records = store.records(&RecordFilter::call(Arc::clone(&call.run_id), call.call_id.clone())).await.unwrap();
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        decisions.filter(|decision| decision.decider.is_some()).cloned().collect::<Vec<_>>()
    };
    while decided().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let in_vain =
        |decision: &DecisionRecord| decision.refused().is_some() || decision.decision == DecisionKind::TooLate;
    assert!(decided().await.iter().all(in_vain));
    let posts = async || {
        let query = Query { scope: Some(Arc::clone(&call.run_id)), ..Query::new(DocumentKind::Post) };
        store.list(&query).await.unwrap().len()
    };
    while posts().await > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(sent("never back"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_knows_who_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let open = async || Arc::new(SqlStore::sqlite(&file, SqlOptions::new()).await.unwrap());
    for (decision, said) in
        [(ApprovalDecision::Approve, "sent at 1"), (ApprovalDecision::Deny(None), "approval_denied")]
    {
        {
            let store = open().await;
            let served = builder(Arc::clone(&store), "").build().unwrap();
            waits(&letter(&piped(&served, NOBODY).await, said).await.unwrap());
            served.close(Duration::ZERO).await;
            store.flush().await.unwrap();
        }
        let store = open().await;
        post(&store, &waiting(&*store).await[0], decision).await;
        let served = builder(Arc::clone(&store), "").build().unwrap();
        let bob = posting(&served, "bob", NOBODY).await;
        waits(&letter(&bob, said).await.unwrap());
        let ours = letter(&piped(&served, NOBODY).await, said).await.unwrap();
        assert!(text(&ours).contains(said), "{ours:?}");
        assert_eq!(sent(said), usize::from(said == "sent at 1"));
        let theirs: Vec<_> =
            waiting(&*store).await.into_iter().filter(|call| call.principal.as_deref() == Some("bob")).collect();
        post(&store, theirs.last().unwrap(), ApprovalDecision::Deny(None)).await;
        letter(&bob, said).await.unwrap();
        store.flush().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_decides_on_its_own_calls_only_where_both_say_so() {
    let own = "[approvals]\nown_calls = true\n";
    let yes = Some(json!({"approve": true}));
    // Both the policy and the server have to permit it.
    for (more, ask) in [("", true), (own, false)] {
        let store = Arc::<MemoryStore>::default();
        let served = builder(Arc::clone(&store), more).ask_clients(ask).build().unwrap();
        for client in [piped(&served, yes.clone()).await, posting(&served, "ada", yes.clone()).await] {
            waits(&letter(&client, "self").await.unwrap());
        }
        assert_eq!((sent("self"), waiting(&*store).await.len()), (0, 1));
    }
    for (at, (answers, expected)) in [
        (json!({"approve": true}), "sent at 1"),
        (json!({"approve": false}), "approval_denied"),
        (Value::Null, "approval_denied"),
    ]
    .into_iter()
    .enumerate()
    {
        let store = Arc::<MemoryStore>::default();
        let served = builder(Arc::clone(&store), own).ask_clients(true).build().unwrap();
        for (client, name) in [
            (piped(&served, Some(answers.clone())).await, "own"),
            (posting(&served, "ada", Some(answers.clone())).await, "asked"),
        ] {
            let name = format!("{name} {at}");
            let done = letter(&client, &name).await.unwrap();
            assert!(text(&done).contains(expected), "{name}: {done:?}");
            assert_eq!(sent(&name), usize::from(expected == "sent at 1"));
        }
        assert!(waiting(&*store).await.is_empty());
    }
}

/// The decider is the principal of the session that `Authenticator` returned, whatever name the answer has.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_form_names_no_decider() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "[approvals]\nown_calls = true\n").ask_clients(true).build().unwrap();
    let answers = json!({"approve": true, "decider": "grace", "principal": "grace", "tenant": "other"});
    let done = letter(&piped(&served, Some(answers)).await, "named").await.unwrap();
    assert_eq!((text(&done), sent("named")), ("sent at 1", 1));
    let records = store.records(&RecordFilter::default()).await.unwrap();
    let deciders: Vec<_> = records.iter().filter_map(|sealed| sealed.record.as_decision()?.decider.clone()).collect();
    assert_eq!(deciders, [Decider::new("ada").tenant("acme")]);
}

/// Each session of Ada has a connection with another id, and the one of `narrow` may only read.
pub(crate) fn by_session(peer: &Peer<'_>) -> Option<RunOptions> {
    let session = peer.header("x-user")?;
    let options = RunOptions::new().principal("ada").tenant("acme");
    let options = options.connection("mail", ConnectionId::new(session));
    Some(if session == "narrow" { options.tools(["notes__read"]) } else { options })
}

fn served_by_session(store: &Arc<MemoryStore>) -> McpServer {
    let catalog = ToolCatalog::builder().tool::<send>().tool::<read>().build().unwrap();
    let policy = "allowed_tools = [\"letters__send\", \"notes__read\"]\nrequire_approval_for_tools = [\"letters__send\"]\n\
                  [approvals]\nown_calls = true\n";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
    let runner = runner.store(Arc::clone(store)).build().unwrap();
    McpServer::builder(runner, by_session).ask_clients(true).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_decided_in_another_session_of_its_party() {
    let store = Arc::<MemoryStore>::default();
    let served = served_by_session(&store);
    let approves = Some(json!({"approve": true}));
    let first = posting(&served, "first", approves.clone()).await;
    // Its user does not answer the question.
    *first.service().before.lock().unwrap() = Some(Box::pin(std::future::pending()));
    let unanswered = tokio::spawn(async move { letter(&first, "sessions").await.map(drop) });
    let call = one_waiting(&*store).await.call_id;
    let second = posting(&served, "second", approves).await;
    let done = letter(&second, "sessions").await.unwrap();
    unanswered.abort();
    assert_eq!((text(&done), sent("sessions")), ("sent at 1", 1));
    let records = store.calls(&RecordFilter::default()).await.unwrap();
    assert_eq!(records.iter().map(|record| &record.tool_call_id).collect::<Vec<_>>(), [&call], "one call");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_the_tool_finds_no_call_of_it() {
    let store = Arc::<MemoryStore>::default();
    let served = served_by_session(&store);
    let (all, narrow) = (posting(&served, "first", NOBODY).await, posting(&served, "narrow", NOBODY).await);
    waits(&letter(&all, "narrow").await.unwrap());
    let call = one_waiting(&*store).await;
    let stranger = letter(&narrow, "narrow").await;
    assert!(stranger.as_ref().is_err_and(|error| !error.to_string().contains("approval")), "{stranger:?}");
    post(&store, &call, ApprovalDecision::Approve).await;
    let stranger = letter(&narrow, "narrow").await;
    assert!(stranger.is_err() && sent("narrow") == 0, "{stranger:?}");
    assert_eq!(text(&letter(&all, "narrow").await.unwrap()), "sent at 1");
    assert_eq!(sent("narrow"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_asks_clients_of_both_eras() {
    let served = builder(MemoryStore::new(), "").build().unwrap();
    let name = Some(json!({"name": "Ada"}));
    for client in [piped(&served, name.clone()).await, posting(&served, "ada", name.clone()).await] {
        let booked = client.call_tool(request("tables__book", json!({}))).await.unwrap();
        assert_eq!((booked.is_error, text(&booked)), (Some(false), "Ada"));
    }
    for client in [piped(&served, Some(Value::Null)).await, posting(&served, "ada", Some(Value::Null)).await] {
        let booked = client.call_tool(request("tables__book", json!({}))).await.unwrap();
        let codes = &booked.content[1].as_text().unwrap().text;
        assert!(booked.is_error == Some(true) && codes.contains("no_name"), "{booked:?}");
    }
    // The state of another principal's call and an invented state belong to no call of the client.
    let ada = posting(&served, "ada", name.clone()).await;
    let asked = ada.call_tool_once(request("tables__book", json!({}))).await.unwrap();
    let rmcp::model::CallToolResponse::InputRequired(asked) = asked else { panic!("{asked:?}") };
    let bob = posting(&served, "bob", name).await;
    for (client, state) in [(&bob, asked.request_state.clone().unwrap()), (&ada, "run_1.call_1".to_owned())] {
        let mut again = request("tables__book", json!({}));
        again.request_state = Some(state);
        let ServiceError::McpError(error) = client.call_tool_once(again).await.unwrap_err() else { panic!() };
        assert_eq!(error.code.0, -32602);
    }
    assert!(matches!(&asked.input_requests, Some(requests) if requests.len() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_are_bounded() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "").max_tasks(3).max_tasks_per_principal(2).build().unwrap();
    let (ada, bob) = (posting(&served, "ada", NOBODY).await, posting(&served, "bob", NOBODY).await);
    for text in ["1", "2"] {
        waits(&letter(&ada, text).await.unwrap());
    }
    let limit = |answer: Result<CallToolResult, ServiceError>| match answer.unwrap_err() {
        ServiceError::McpError(error) => (error.code.0, error.data.unwrap()["limit"].clone()),
        error => panic!("{error}"),
    };
    assert_eq!(limit(letter(&ada, "3").await), (-32000, json!(2)));
    waits(&letter(&ada, "1").await.unwrap());
    waits(&letter(&bob, "4").await.unwrap());
    assert_eq!(limit(letter(&bob, "5").await), (-32000, json!(3)));
    assert_eq!(waiting(&*store).await.len(), 3);
}

/// A message with many decisions has several in each piece. One of an absent client keeps back no other.
#[tokio::test(flavor = "multi_thread")]
async fn many_decisions_at_once_wait_for_their_own_clients_only() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), "").max_tasks_per_principal(100).build().unwrap();
    let client = piped_since_2026(&served, NOBODY).await;
    let name = |at: usize| format!("batch {at:02}");
    for at in 0..65 {
        waits(&letter(&client, &name(at)).await.unwrap());
    }
    let mut calls = waiting(&*store).await;
    calls.sort_by(|one, other| one.arguments().cmp(other.arguments()));
    let grace = Decider::new("grace").tenant("acme");
    let input = calls.iter().enumerate().fold(Input::new(), |input, (at, call)| {
        let decision = if at == 9 { ApprovalDecision::Deny(None) } else { ApprovalDecision::Approve };
        input.decide(&call.question(), decision, &grace)
    });
    tests::queue(Arc::clone(&store)).post(&calls[0].run_id, Some("acme"), &input).await.unwrap();
    for at in [7, 6, 64] {
        assert_eq!(text(&letter(&client, &name(at)).await.unwrap()), "sent at 1", "{at}");
    }
    // A denial needs no client.
    while waiting(&*store).await.len() > 61 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for at in 0..65 {
        assert_eq!(sent(&name(at)), usize::from([6, 7, 64].contains(&at)), "{at}");
    }
}

#[test]
fn a_server_whose_calls_nobody_can_decide_on_is_not_built() {
    let catalog = || ToolCatalog::builder().tool::<send>().tool::<book>().tool::<read>().build().unwrap();
    let runner = |more: &str, approvals: bool| {
        let policy = ToolPolicy::from_toml(&format!("{POLICY}{more}")).unwrap();
        ToolRunner::builder(catalog(), policy).approvals(approvals).build().unwrap()
    };
    let refused = McpServer::builder(runner("", true), admitted).build().unwrap_err();
    assert!(refused.to_string().contains("require_approval_for_tools") && refused.code() == "mcp_unreachable");
    McpServer::builder(runner("", false), admitted).build().unwrap();
    let asks = |more: &str| McpServer::builder(runner(more, true), admitted).ask_clients(true).build();
    asks("[approvals]\nown_calls = true").unwrap();
    let both = "[approvals.tools.letters__send]\nown_calls = true\n[approvals.tools.tables__book]\nown_calls = true";
    asks(both).unwrap();
    // A client that is asked may not decide.
    for more in [
        "",
        "[approvals.tools.tables__book]\nown_calls = true",
        "[approvals.tools.letters__send]\nown_calls = true",
        "[approvals]\nown_calls = true\n[approvals.tools.letters__send]\nown_calls = false",
        "[approvals]\nown_calls = true\nrequired = 2",
    ] {
        let refused = asks(more).unwrap_err();
        assert_eq!(refused.code(), "mcp_unreachable", "{more}");
    }
}

/// Without a rule, a call waits after an equal one of unknown outcome.
#[test]
fn a_server_whose_unknown_outcomes_nobody_can_decide_on_is_not_built() {
    let served = |tool: &str, approvals: bool, store: bool| {
        let catalog = ToolCatalog::builder().tool::<send>().tool::<read>().build().unwrap();
        let runner = ToolRunner::builder(catalog, ToolPolicy::allow([tool])).approvals(approvals);
        let runner = if store { runner.store(MemoryStore::new()) } else { runner };
        McpServer::builder(runner.build().unwrap(), admitted).build()
    };
    let refused = served("letters__send", true, false).unwrap_err();
    assert_eq!(refused.code(), "mcp_unreachable");
    assert!(refused.to_string().contains("an unknown outcome of `letters__send`"), "{refused}");
    for (tool, approvals, store) in
        [("letters__send", false, false), ("letters__send", true, true), ("notes__read", true, false)]
    {
        served(tool, approvals, store).unwrap();
    }
}

/// Where only its own principal can decide, a call of a client that cannot be asked does not wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_can_decide_on_does_not_wait() {
    let catalog = ToolCatalog::builder().tool::<send>().tool::<book>().tool::<read>().build().unwrap();
    let policy = ToolPolicy::from_toml(&format!("{POLICY}[approvals]\nown_calls = true")).unwrap();
    let runner = ToolRunner::builder(catalog, policy).approvals(true).build().unwrap();
    let served = McpServer::builder(runner.clone(), admitted).ask_clients(true).build().unwrap();
    for client in [piped(&served, NOBODY).await, posting(&served, "ada", NOBODY).await] {
        let ServiceError::McpError(error) = letter(&client, "alone").await.unwrap_err() else { panic!() };
        assert_eq!((error.code.0, &error.data.unwrap()["code"]), (-32000, &json!("no_decider")));
    }
    assert_eq!((sent("alone"), waiting(&**runner.store()).await.len()), (0, 0));
    let records = runner.store().calls(&RecordFilter::default()).await.unwrap();
    assert!(outcomes(&records).iter().all(|one| one[1] == "cancelled") && records.len() == 2, "{records:?}");
    let approves = Some(json!({"approve": true}));
    for client in [piped(&served, approves.clone()).await, posting(&served, "ada", approves).await] {
        assert_eq!(text(&letter(&client, "alone").await.unwrap()), "sent at 1");
    }
}
