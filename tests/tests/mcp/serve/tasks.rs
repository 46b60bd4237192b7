//! Calls that wait, as tasks of the protocol (SEP-2663).

mod once;
mod settled;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolResponse, CancelTaskParams, ClientCapabilities, ClientConfig, DetailedTask, ElicitationCapability,
    FormElicitationCapability, GetTaskParams, Implementation, InputRequest, ProtocolVersion, Task, TaskPayload,
    TaskStatus, UpdateTaskParams,
};
use rmcp::service::{ClientLifecycleMode, RunningService, ServiceError, ServiceExt as _};
use serde_json::{Value, json};
use tests::world::{HookAction, HookedStore};
use tokio::sync::Semaphore;
use tool_runtime::agent::{CodeMode, Input};
use tool_runtime::call::{Decider, DecisionError};
use tool_runtime::capability::Elicit;
use tool_runtime::mcp::serve::{HttpOptions, McpServer, McpServerBuilder, Peer};
use tool_runtime::media::Media;
use tool_runtime::runner::{ApprovalDecision, Failure, ResumeError};
use tool_runtime::store::{DocumentKind, MemoryStore, PendingCall, Query, RecordFilter, Store};
use tool_runtime::testing::ManualClock;
use tool_runtime::{Outcome, RunOptions, ToolCatalog, ToolContext, ToolError, ToolPolicy, ToolRunner, WithMedia, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::serve::http::{listening, transport};
use crate::serve::rig::{admitted, outcomes, request};

/// Sends a letter.
#[tool(name = "letters__send", effect = external_side_effect, redact = ["$", "$media"])]
fn send(
    /// The text.
    text: String,
) -> Result<WithMedia<usize>, ToolError> {
    SENT.fetch_add(usize::from(text == "counted"), Ordering::SeqCst);
    Ok(WithMedia::new(text.len()).media(Media::bytes("text/plain", b"a receipt")?))
}

/// How often the letter "counted" was sent.
static SENT: AtomicUsize = AtomicUsize::new(0);

/// Writes for as long as it may.
#[tool(name = "slow__write", effect = state_change, redact = ["$"])]
async fn slow(context: &ToolContext) -> Result<u32, ToolError> {
    context.cancellation().cancelled().await;
    std::future::pending().await
}

/// Asks for a name.
#[tool(name = "tables__book", effect = external_side_effect, redact = ["$"])]
async fn book(elicit: &dyn Elicit) -> Result<String, ToolError> {
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let answer = elicit.ask("In which name?", &form).await.map_err(|_| ToolError::code("no_name"))?;
    Ok(answer["name"].as_str().unwrap_or_default().to_owned())
}

const POLICY: &str = r#"
allowed_tools = ["letters__send", "slow__write", "tables__book"]
require_approval_for_tools = ["letters__send", "slow__write", "tables__book"]
"#;

fn runner(store: impl Store + 'static, policy: &str) -> tool_runtime::runner::RunnerBuilder {
    let catalog = ToolCatalog::builder().tool::<send>().tool::<slow>().tool::<book>().build().unwrap();
    ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true).store(store)
}

fn builder(store: impl Store + 'static, policy: &str) -> McpServerBuilder {
    McpServer::builder(runner(store, policy).build().unwrap(), admitted)
}

fn server(store: &Arc<MemoryStore>) -> McpServer {
    builder(Arc::clone(store), POLICY).build().unwrap()
}

/// A client. It may support tasks, and it may fill in forms.
#[derive(Clone, Copy)]
pub(crate) struct Patient {
    tasks: bool,
    forms: bool,
    version: &'static ProtocolVersion,
}

pub(crate) type Client = RunningService<RoleClient, Patient>;

const OLD: Patient = Patient { tasks: true, forms: false, version: &ProtocolVersion::V_2025_11_25 };
const NEW: Patient = Patient { version: &ProtocolVersion::V_2026_07_28, ..OLD };

impl ClientHandler for Patient {
    fn get_info(&self) -> ClientConfig {
        let builder = ClientCapabilities::builder();
        let mut capabilities = if self.tasks { builder.enable_tasks().build() } else { builder.build() };
        if self.forms {
            let mut modes = ElicitationCapability::default();
            modes.form = Some(FormElicitationCapability::default());
            capabilities.elicitation = Some(modes);
        }
        ClientConfig::new(capabilities, Implementation::new("patient", "1")).with_protocol_version(self.version.clone())
    }
}

async fn piped(server: &McpServer, patient: Patient) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let server = server.clone();
    tokio::spawn(async move { server.stream(read, write).await });
    patient.serve(ours).await.expect("a handshake")
}

/// A client of 2026-07-28, which has no session.
pub(crate) async fn over_http(server: &McpServer, user: &str) -> Client {
    over_http_as(server, user, NEW).await
}

async fn over_http_as(server: &McpServer, user: &str, patient: Patient) -> Client {
    let address = listening(server, &HttpOptions::new()).await;
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    rmcp::service::serve_client_with_lifecycle(patient, transport(address, user), mode).await.expect("a server")
}

pub(crate) async fn task(client: &Client, name: &str, arguments: Value) -> Task {
    match client.call_tool_once(request(name, arguments)).await.unwrap() {
        CallToolResponse::Task(created) => created.task,
        other => panic!("no task: {other:?}"),
    }
}

pub(crate) async fn get(client: &Client, id: &str) -> Result<DetailedTask, ServiceError> {
    client.get_task(GetTaskParams::new(id)).await.map(|result| result.task)
}

/// Asks until `is` holds for the task.
async fn until(client: &Client, id: &str, is: impl Fn(&DetailedTask) -> bool) -> DetailedTask {
    loop {
        let task = get(client, id).await.unwrap();
        if is(&task) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn ended(client: &Client, id: &str) -> DetailedTask {
    until(client, id, |task| task.status().is_terminal()).await
}

fn result(task: &DetailedTask) -> &rmcp::model::JsonObject {
    match &task.payload {
        TaskPayload::Completed { result } => result,
        other => panic!("not completed: {other:?}"),
    }
}

fn code(error: ServiceError) -> (i32, String) {
    match error {
        ServiceError::McpError(error) => (error.code.0, error.message.into_owned()),
        error => panic!("{error}"),
    }
}

async fn waiting(store: &dyn Store) -> Vec<PendingCall> {
    tests::pending_calls(store, &RecordFilter::default()).await
}

/// Decides like a person in another process, which has the store only.
async fn decide(store: &Arc<impl Store + 'static>, decision: ApprovalDecision) {
    decide_as(store, "grace", decision).await;
}

async fn decide_as(store: &Arc<impl Store + 'static>, name: &str, decision: ApprovalDecision) {
    let call = waiting(store).await.pop().expect("a call that waits");
    let decider = Decider::new(name).tenant("acme");
    let input = Input::new().decide(&call.question(), decision, &decider);
    tests::queue(Arc::clone(store)).post(&call.run_id, Some("acme"), &input).await.unwrap();
}

/// The decisions that were refused, each with the outcome that it would have had.
async fn refusals(store: &dyn Store) -> Vec<(Outcome, Option<DecisionError>)> {
    let records = store.records(&RecordFilter::default()).await.unwrap();
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
    decisions.filter_map(|decision| Some((decision.refused()?, decision.mismatch()))).collect()
}

async fn recorded(store: &dyn Store) -> Vec<Value> {
    outcomes(&store.calls(&RecordFilter::default()).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_is_a_task_until_it_is_decided() {
    let store = Arc::<MemoryStore>::default();
    let served = server(&store);
    for client in [piped(&served, OLD).await, over_http(&served, "ada").await] {
        let (sent, before) = (SENT.load(Ordering::SeqCst), recorded(&*store).await.len());
        let created = task(&client, "letters__send", json!({"text": "counted"})).await;
        assert_eq!((created.status, created.poll_interval_ms), (TaskStatus::InputRequired, Some(1000)));
        assert!(created.ttl_ms.is_some_and(|ttl| ttl > 24 * 3_600_000), "{created:?}");
        let seen = get(&client, &created.task_id).await.unwrap();
        assert!(matches!(&seen.payload, TaskPayload::InputRequired { input_requests } if input_requests.is_empty()));
        assert_eq!(seen.task, created);
        assert_eq!((SENT.load(Ordering::SeqCst), recorded(&*store).await.len()), (sent, before));

        decide(&store, ApprovalDecision::Approve).await;
        let done = ended(&client, &created.task_id).await;
        assert_eq!(result(&done)["content"][0]["text"], "7");
        assert_eq!(result(&done)["content"][1]["type"], "resource", "files are there too");
        assert_eq!(get(&client, &created.task_id).await.unwrap(), done, "it can be asked for again");
        assert_eq!(SENT.load(Ordering::SeqCst), sent + 1);
        assert_eq!(recorded(&*store).await[before..], [json!(["letters__send", "ok"])], "one record");
        // A request that comes too late changes nothing.
        client.cancel_task(CancelTaskParams::new(&created.task_id)).await.unwrap();
        assert_eq!(ended(&client, &created.task_id).await.status(), TaskStatus::Completed);
    }
}

/// A query reads the call as suspended here, and finds its record only after it was carried out.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_meets_the_decision_loses_no_file() {
    let memory = Arc::<MemoryStore>::default();
    let (is_held, goes_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let holds_next = Arc::new(AtomicBool::new(false));
    let store = HookedStore::new(Arc::clone(&memory) as _, {
        let (is_held, goes_on, holds_next) = (Arc::clone(&is_held), Arc::clone(&goes_on), Arc::clone(&holds_next));
        move |method| {
            if method != "read" || !holds_next.swap(false, Ordering::SeqCst) {
                return HookAction::Pass;
            }
            let goes_on = Arc::clone(&goes_on);
            is_held.add_permits(1);
            HookAction::After(Box::pin(async move { drop(goes_on.acquire().await) }))
        }
    });
    let served = builder(store, POLICY).build().unwrap();
    let client = piped(&served, OLD).await;
    let id = task(&client, "letters__send", json!({"text": "met"})).await.task_id;

    holds_next.store(true, Ordering::SeqCst);
    let met = async {
        drop(is_held.acquire().await.unwrap());
        decide(&memory, ApprovalDecision::Approve).await;
        while recorded(&*memory).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        goes_on.add_permits(1);
    };
    let (seen, ()) = tokio::join!(get(&client, &id), met);
    let seen = seen.unwrap();
    let done = ended(&client, &id).await;
    assert_eq!(result(&done)["content"][1]["type"], "resource");
    assert!(seen.status() == TaskStatus::Working || seen == done, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_is_a_result_and_a_cancellation_is_not() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store), OLD).await;
    let denied = task(&client, "letters__send", json!({"text": "no"})).await;
    decide(&store, ApprovalDecision::Deny(Some("Not today.".to_owned()))).await;
    let denied = ended(&client, &denied.task_id).await;
    assert_eq!(result(&denied)["isError"], true);
    assert!(result(&denied)["content"][0]["text"].as_str().unwrap().contains("Not today."));

    let cancelled = task(&client, "letters__send", json!({"text": "never"})).await;
    client.cancel_task(CancelTaskParams::new(&cancelled.task_id)).await.unwrap();
    assert_eq!(get(&client, &cancelled.task_id).await.unwrap().payload, TaskPayload::Cancelled);
    assert!(waiting(&*store).await.is_empty());
    let expected = [json!(["letters__send", "approval_denied"]), json!(["letters__send", "cancelled"])];
    assert_eq!(recorded(&*store).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_runs_is_stopped() {
    let store = Arc::<MemoryStore>::default();
    let served = server(&store);
    let client = piped(&served, OLD).await;
    let slow = task(&client, "slow__write", json!({})).await;
    decide(&store, ApprovalDecision::Approve).await;
    until(&client, &slow.task_id, |task| task.status() == TaskStatus::Working).await;
    client.cancel_task(CancelTaskParams::new(&slow.task_id)).await.unwrap();
    let stopped = ended(&client, &slow.task_id).await;
    assert!(result(&stopped)["content"][0]["text"].as_str().unwrap().contains("outcome_unknown"), "{stopped:?}");

    assert_eq!(recorded(&*store).await, [json!(["slow__write", "outcome_unknown"])]);

    // So is one that runs when the server is closed. Another store: here the same call would ask about the first one.
    let store = Arc::<MemoryStore>::default();
    let served = server(&store);
    let client = piped(&served, OLD).await;
    let slow = task(&client, "slow__write", json!({})).await;
    decide(&store, ApprovalDecision::Approve).await;
    until(&client, &slow.task_id, |task| task.status() == TaskStatus::Working).await;
    served.close(Duration::from_millis(50)).await;
    assert_eq!(recorded(&*store).await, [json!(["slow__write", "outcome_unknown"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn to_strangers_a_task_does_not_exist() {
    let store = Arc::<MemoryStore>::default();
    let served = server(&store);
    let ada = over_http(&served, "ada").await;
    let id = task(&ada, "letters__send", json!({"text": "hello"})).await.task_id;
    let bob = over_http(&served, "bob").await;
    let nonsense =
        ["nonsense", "", ".", "run.call", &id.replace("call_", "call_0"), &"x".repeat(100_000), "run\u{0}.c"];
    for (client, id) in nonsense.iter().map(|id| (&ada, *id)).chain([(&bob, id.as_str())]) {
        let same = (-32602, "There is no such task.".to_owned());
        // A client of this library would not send some of these ids over HTTP, so they go through the pipe below.
        if !id.is_empty() && id.len() < 1000 && !id.contains('\0') {
            assert_eq!(code(get(client, id).await.unwrap_err()), same, "{id}");
            assert_eq!(code(client.cancel_task(CancelTaskParams::new(id)).await.unwrap_err()), same);
            let update = UpdateTaskParams::new(id, [("approval-1".to_owned(), json!({"action": "accept"}))].into());
            assert_eq!(code(client.update_task(update).await.unwrap_err()), same);
        }
    }
    let piped = piped(&served, OLD).await;
    for id in nonsense {
        assert_eq!(code(get(&piped, id).await.unwrap_err()).0, -32602);
    }
    assert_eq!(waiting(&*store).await.len(), 1, "it still waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_tasks_gets_the_plain_answer() {
    let store = Arc::<MemoryStore>::default();
    let served = server(&store);
    let client = piped(&served, Patient { tasks: false, ..OLD }).await;
    let CallToolResponse::Complete(said) =
        client.call_tool_once(request("letters__send", json!({"text": "x"}))).await.unwrap()
    else {
        panic!("a task")
    };
    assert_eq!(said.is_error, Some(true));
    assert!(said.content[0].as_text().unwrap().text.contains("approval_required"));
    assert_eq!(code(get(&client, "run.call").await.unwrap_err()).0, -32021);

    // Calls of a server without tasks get none either. A call over the limit is withdrawn.
    for (max, whole, waits) in [(0, 0, 3), (1, 1, 1)] {
        let store = Arc::<MemoryStore>::default();
        let served = builder(Arc::clone(&store), POLICY).max_tasks(max).build().unwrap();
        let client = piped(&served, OLD).await;
        let mut tasks = 0;
        for text in ["x", "y", "z"] {
            let answered = client.call_tool_once(request("letters__send", json!({"text": text}))).await;
            tasks += usize::from(matches!(answered, Ok(CallToolResponse::Task(_))));
            assert_eq!(answered.is_err(), max == 1 && text != "x");
        }
        assert_eq!(tasks, whole);
        assert_eq!(waiting(&*store).await.len(), waits);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_finds_its_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let open = async || Arc::new(SqlStore::sqlite(&file, SqlOptions::new()).await.unwrap());
    let (mut waits, mut over) = (String::new(), String::new());
    {
        let store = open().await;
        let served = builder(Arc::clone(&store), POLICY).build().unwrap();
        let client = piped(&served, OLD).await;
        over.clone_from(&task(&client, "letters__send", json!({"text": "first"})).await.task_id);
        decide(&store, ApprovalDecision::Approve).await;
        ended(&client, &over).await;
        waits.clone_from(&task(&client, "letters__send", json!({"text": "second"})).await.task_id);
        // Everything is lost but the store.
        served.close(Duration::ZERO).await;
        store.flush().await.unwrap();
    }
    let store = open().await;
    let served = builder(Arc::clone(&store), POLICY).build().unwrap();
    // Somebody decides while nobody serves the run.
    decide(&store, ApprovalDecision::Approve).await;
    let bob = over_http(&served, "bob").await;
    assert_eq!(code(get(&bob, &waits).await.unwrap_err()).0, -32602, "it is Ada's");
    let client = piped(&served, OLD).await;
    let found = ended(&client, &waits).await;
    assert_eq!(result(&found)["content"][0]["text"], "6");
    assert_eq!(result(&get(&client, &over).await.unwrap())["content"][0]["text"], "5");
    assert_eq!(recorded(&*store).await, vec![json!(["letters__send", "ok"]); 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_asked_only_if_server_policy_and_client_allow_it() {
    let own = format!("{POLICY}\n[approvals]\nown_calls = true\n");
    let forms = Patient { forms: true, ..OLD };
    for (policy, asks, patient, asked) in
        [(&*own, true, forms, 1), (&*own, true, OLD, 0), (&*own, false, forms, 0), (POLICY, true, forms, 0)]
    {
        let store = Arc::<MemoryStore>::default();
        let served = builder(Arc::clone(&store), policy).ask_clients(asks).build().unwrap();
        let client = piped(&served, patient).await;
        let id = task(&client, "letters__send", json!({"text": "hello"})).await.task_id;
        let TaskPayload::InputRequired { input_requests } = get(&client, &id).await.unwrap().payload else { panic!() };
        assert_eq!(input_requests.len(), asked);
        let key = input_requests.keys().next().map_or("approval-1", String::as_str);
        let answer = |answer: Value| UpdateTaskParams::new(&id, [(key.to_owned(), answer)].into());
        client.update_task(answer(json!({"action": "cancel"}))).await.unwrap();
        client.update_task(answer(json!("nonsense"))).await.unwrap();
        client.update_task(answer(json!({"action": "accept", "content": {"approve": true}}))).await.unwrap();
        if asked == 1 {
            let question = serde_json::to_value(&input_requests[key]).unwrap();
            assert_eq!(question["method"], "elicitation/create");
            assert!(question["params"]["message"].as_str().unwrap().contains("hello"), "{question}");
            assert_eq!(ended(&client, &id).await.status(), TaskStatus::Completed);
            assert_eq!(recorded(&*store).await, [json!(["letters__send", "ok"])]);
        } else {
            // An answer without a request decides nothing; the decision of a person does.
            decide(&store, ApprovalDecision::Deny(None)).await;
            ended(&client, &id).await;
            assert_eq!(recorded(&*store).await, [json!(["letters__send", "approval_denied"])]);
        }
    }
}

/// The client approves its own call, and another person has to approve it too. The client is not asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_needs_two_people_waits_for_both() {
    let two = format!("{POLICY}\n[approvals]\nown_calls = true\nrequired = 2\n");
    let forms = Patient { forms: true, ..OLD };
    for asks in [true, false] {
        let store = Arc::<MemoryStore>::default();
        let served = builder(Arc::clone(&store), &two).ask_clients(asks).build().unwrap();
        let client = piped(&served, forms).await;
        let id = task(&client, "letters__send", json!({"text": "hello"})).await.task_id;
        let TaskPayload::InputRequired { input_requests } = get(&client, &id).await.unwrap().payload else { panic!() };
        if asks {
            let key = input_requests.keys().next().unwrap().clone();
            let question = serde_json::to_value(&input_requests[&key]).unwrap();
            assert!(
                question["params"]["message"].as_str().unwrap().contains("needs 2 approvals and has 0"),
                "{question}"
            );
            let yes = json!({"action": "accept", "content": {"approve": true}});
            client.update_task(UpdateTaskParams::new(&id, [(key.clone(), yes.clone())].into())).await.unwrap();
            let noted = get(&client, &id).await.unwrap();
            let TaskPayload::InputRequired { input_requests } = noted.payload else { panic!("{noted:?}") };
            assert!(input_requests.is_empty(), "the client has approved");
            client.update_task(UpdateTaskParams::new(&id, [(key, yes)].into())).await.unwrap();
        } else {
            decide_as(&store, "heidi", ApprovalDecision::Approve).await;
        }
        let waits = waiting(&*store).await.remove(0);
        assert_eq!((waits.approvals().0.len(), waits.approvals().1), (1, 2));
        assert!(recorded(&*store).await.is_empty());
        decide_as(&store, "grace", ApprovalDecision::Approve).await;
        assert_eq!(ended(&client, &id).await.status(), TaskStatus::Completed);
        assert_eq!(recorded(&*store).await, [json!(["letters__send", "ok"])]);
    }
}

/// Another tenant's client learns nothing from its answer, and operators are told.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_tenant_is_reported() {
    let own = format!("{POLICY}\n[approvals]\nown_calls = true\n");
    let (store, told) = (Arc::<MemoryStore>::default(), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&told);
    let failed = move |failure: &Failure<'_>| sink.lock().unwrap().push(failure.code.to_owned());
    let party = |peer: &Peer<'_>| {
        let who = peer.header("x-user")?;
        Some(RunOptions::new().principal(who).tenant(if who == "eve" { "other" } else { "acme" }))
    };
    let gate = runner(Arc::clone(&store), &own).failures(failed).build().unwrap();
    let served = McpServer::builder(gate, party).ask_clients(true).build().unwrap();
    let forms = Patient { forms: true, ..NEW };
    let (ada, eve) = (over_http_as(&served, "ada", forms).await, over_http_as(&served, "eve", forms).await);
    let id = task(&ada, "letters__send", json!({"text": "hello"})).await.task_id;
    let TaskPayload::InputRequired { input_requests } = get(&ada, &id).await.unwrap().payload else { panic!() };
    let key = input_requests.keys().next().unwrap().clone();
    let approve = |id: &str| {
        UpdateTaskParams::new(id, [(key.clone(), json!({"action": "accept", "content": {"approve": true}}))].into())
    };
    let refused = code(eve.update_task(approve(&id)).await.unwrap_err());
    let (run, call) = id.rsplit_once('.').unwrap();
    assert_eq!(refused, code(eve.update_task(approve(&format!("{run}0.{call}"))).await.unwrap_err()));
    let refusal = (Outcome::PolicyDenied, Some(DecisionError::DeciderTenant));
    assert_eq!(*told.lock().unwrap(), ["decider_tenant"]);
    assert_eq!(refusals(&*store).await, [refusal]);
    // The server looks at the first eight answers.
    let (before, question) = key.strip_prefix("approval-").unwrap().split_once('-').unwrap();
    for (guesses, reported) in [(1, true), (7, true), (8, false)] {
        let mut many = approve(&id);
        for number in 0..guesses {
            let other = question.replacen('.', &format!(".{number}"), 1);
            let guess = json!({"action": "accept", "content": {"approve": true}});
            many.input_responses.insert(format!("approval-0-{other}"), guess);
        }
        assert_eq!(many.input_responses.len(), guesses + 1, "{before}");
        let known = refusals(&*store).await.len();
        assert_eq!(code(eve.update_task(many).await.unwrap_err()), refused);
        assert_eq!(refusals(&*store).await.len(), known + usize::from(reported), "{guesses}");
    }
    assert!(recorded(&*store).await.is_empty());
    ada.update_task(approve(&id)).await.unwrap();
    ended(&ada, &id).await;
    assert_eq!(recorded(&*store).await, [json!(["letters__send", "ok"])]);
}

/// A script waits with one call after the other. Another client decides on the first, and another process serves the
/// task.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_decides_what_was_asked_and_nothing_else() {
    const WRITES: &str = "letters__send(#{ text: \"first\" }) + letters__send(#{ text: \"second\" })";
    let store = Arc::<MemoryStore>::default();
    let serve = || {
        let writer = CodeMode::new("writer", "1").tools(["letters__send"]).effects();
        let catalog = ToolCatalog::builder().tool::<send>().dynamic(writer).build().unwrap();
        let policy = "allowed_tools = [\"letters__send\"]\nallowed_graphs = [\"writer\"]\napprovals.own_calls = true";
        let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
        let runner = runner.store(Arc::clone(&store)).build().unwrap();
        McpServer::builder(runner, admitted).ask_clients(true).build().unwrap()
    };
    let forms = Patient { forms: true, ..OLD };
    let client = piped(&serve(), forms).await;
    let id = task(&client, "graph__writer", json!({ "script": WRITES })).await.task_id;
    let key = |task: &DetailedTask| match &task.payload {
        TaskPayload::InputRequired { input_requests } => input_requests.keys().next().cloned(),
        _ => None,
    };
    let first = key(&get(&client, &id).await.unwrap()).expect("a question about the first letter");
    decide(&store, ApprovalDecision::Approve).await;
    let is_next = |task: &DetailedTask| key(task).is_some_and(|key| key != first);
    until(&client, &id, is_next).await;

    let other = piped(&serve(), forms).await;
    let second = key(&get(&other, &id).await.unwrap()).expect("a question about the second letter");
    assert_ne!(first, second);
    let answer = |key: &str, approve: bool| {
        let answer = json!({"action": "accept", "content": {"approve": approve}});
        UpdateTaskParams::new(&id, [(key.to_owned(), answer)].into())
    };
    // A second answer to the first question would deny the second letter.
    for client in [&client, &other] {
        client.update_task(answer(&first, false)).await.unwrap();
    }
    other.update_task(answer(&second, true)).await.unwrap();
    assert_eq!(result(&ended(&other, &id).await)["structuredContent"]["value"], "11");
}

/// Each call was stored together with the calls that were waiting then.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_session_that_wait_at_the_same_time_are_all_found_again() {
    let store = Arc::<MemoryStore>::default();
    let client = Arc::new(piped(&server(&store), OLD).await);
    let mut calls = tokio::task::JoinSet::new();
    for at in 0..24 {
        let client = Arc::clone(&client);
        calls.spawn(async move { task(&client, "letters__send", json!({ "text": format!("{at}") })).await });
    }
    let tasks = calls.join_all().await;
    let again = piped(&server(&store), OLD).await;
    for task in tasks {
        assert_eq!(get(&again, &task.task_id).await.unwrap().status(), TaskStatus::InputRequired);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_asks_its_client_while_it_is_a_task() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store), Patient { forms: true, ..OLD }).await;
    let id = task(&client, "tables__book", json!({})).await.task_id;
    decide(&store, ApprovalDecision::Approve).await;
    let asks = |task: &DetailedTask| matches!(&task.payload, TaskPayload::InputRequired { input_requests } if !input_requests.is_empty());
    let asking = until(&client, &id, asks).await;
    let TaskPayload::InputRequired { input_requests } = asking.payload else { panic!() };
    let (key, question) = input_requests.first_key_value().unwrap();
    assert!(matches!(question, InputRequest::Elicitation(_)));
    let answer = |key: &str, answer: Value| UpdateTaskParams::new(&id, [(key.to_owned(), answer)].into());
    client.update_task(answer("question-9", json!({"action": "accept", "content": {"name": "Eve"}}))).await.unwrap();
    client.update_task(answer(key, json!({"action": "accept", "content": {"name": "Ada"}}))).await.unwrap();
    client.update_task(answer(key, json!({"action": "accept", "content": {"name": "Bob"}}))).await.unwrap();
    assert_eq!(result(&ended(&client, &id).await)["content"][0]["text"], "Ada");

    // Without a client that fills in forms there is nobody to ask.
    let client = piped(&server(&store), OLD).await;
    let id = task(&client, "tables__book", json!({})).await.task_id;
    decide(&store, ApprovalDecision::Approve).await;
    assert_eq!(result(&ended(&client, &id).await)["isError"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_asks_becomes_a_task_where_nobody_is_asked_meanwhile() {
    let policy = "allowed_tools = ['tables__book']";
    let forms = Patient { forms: true, ..NEW };
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), policy).build().unwrap();
    let client = over_http_as(&served, "ada", forms).await;
    let asked = task(&client, "tables__book", json!({})).await;
    assert_eq!(asked.status, TaskStatus::InputRequired);
    let TaskPayload::InputRequired { input_requests } = get(&client, &asked.task_id).await.unwrap().payload else {
        panic!("nothing is asked")
    };
    let key = input_requests.first_key_value().unwrap().0.clone();
    let bob = over_http_as(&served, "bob", forms).await;
    let answer = |name: &str| {
        let answer = json!({"action": "accept", "content": {"name": name}});
        UpdateTaskParams::new(&asked.task_id, [(key.clone(), answer)].into())
    };
    assert_eq!(code(bob.update_task(answer("Bob")).await.unwrap_err()).0, -32602);
    client.update_task(answer("Ada")).await.unwrap();
    assert_eq!(result(&ended(&client, &asked.task_id).await)["content"][0]["text"], "Ada");
    assert_eq!(recorded(&*store).await, [json!(["tables__book", "ok"])]);

    // It is stopped like any other, and by the end of the server.
    let asked = task(&client, "tables__book", json!({})).await;
    client.cancel_task(CancelTaskParams::new(&asked.task_id)).await.unwrap();
    let stopped = ended(&client, &asked.task_id).await;
    assert!(result(&stopped)["content"][0]["text"].as_str().unwrap().contains("outcome_unknown"), "{stopped:?}");
    // Another principal: the same call of this one would wait, because the outcome of its call is unknown.
    let _left = task(&bob, "tables__book", json!({})).await;
    served.close(Duration::from_millis(50)).await;
    let unknown = json!(["tables__book", "outcome_unknown"]);
    assert_eq!(recorded(&*store).await, [json!(["tables__book", "ok"]), unknown.clone(), unknown]);

    // If there is no room, or no client that fills in forms, the tool gets an error.
    for (max, patient) in [(1, forms), (1, NEW)] {
        let store = Arc::<MemoryStore>::default();
        let served = builder(Arc::clone(&store), policy).max_tasks(max).build().unwrap();
        let client = over_http_as(&served, "ada", patient).await;
        if patient.forms {
            task(&client, "tables__book", json!({})).await;
        }
        let said = client.call_tool_once(request("tables__book", json!({}))).await.unwrap();
        let CallToolResponse::Complete(said) = said else { panic!("a task") };
        assert_eq!(said.is_error, Some(true));
        assert!(recorded(&*store).await.contains(&json!(["tables__book", "execution_error"])));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unauthorised_decision_changes_nothing() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store), OLD).await;
    let id = task(&client, "letters__send", json!({"text": "hello"})).await.task_id;
    let call = waiting(&*store).await.remove(0);
    let queue = tests::queue(Arc::clone(&store));
    for decider in [Decider::new("ada").tenant("acme"), Decider::new("grace").tenant("other")] {
        let input = Input::new().decide(&call.question(), ApprovalDecision::Approve, &decider);
        let refused = queue.post(&call.run_id, Some("acme"), &input).await;
        assert!(matches!(refused, Err(ResumeError::NotWaiting(_) | ResumeError::NotAllowed(_))), "{refused:?}");
    }
    let barred = [DecisionError::OwnCall, DecisionError::DeciderTenant].map(|why| (Outcome::PolicyDenied, Some(why)));
    assert_eq!(refusals(&*store).await, barred, "they are recorded before anything is kept");
    let input = Input::new().decide(&call.question(), ApprovalDecision::Approve, &Decider::new("grace"));
    assert!(queue.post(&call.run_id, Some("other"), &input).await.is_err());
    assert_eq!(refusals(&*store).await[2..], [barred[1]], "its decider is of no tenant");
    assert_eq!(get(&client, &id).await.unwrap().status(), TaskStatus::InputRequired);
    // Arguments that do not fit leave it waiting, too. Until the server has refused them, they are the answer.
    decide(&store, ApprovalDecision::ApproveEdited("{}".to_owned())).await;
    let edited = ApprovalDecision::ApproveEdited(r#"{"text":"edited"}"#.to_owned());
    let input = Input::new().decide(&call.question(), edited, &Decider::new("grace").tenant("acme"));
    let refused = queue.post(&call.run_id, Some("acme"), &input).await;
    assert!(matches!(refused, Err(ResumeError::NotWaiting(_))), "{refused:?}");
    while !store.list(&Query::new(DocumentKind::Post)).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    queue.post(&call.run_id, Some("acme"), &input).await.unwrap();
    // A decision next to one that is on its way is refused, and recorded.
    let mut refused = refusals(&*store).await.split_off(3);
    refused.retain(|one| *one != (Outcome::ApprovalMismatch, Some(DecisionError::NotPending)));
    assert_eq!(refused, [(Outcome::ValidationError, None)]);
    let ended = ended(&client, &id).await;
    assert_eq!(result(&ended)["content"][0]["text"], "6");
    let edited = r#"A person changed `text` before it ran: `text` is "edited"."#;
    assert_eq!(result(&ended)["content"][2]["text"], edited, "its model reads what the tool got");
    assert_eq!(recorded(&*store).await, [json!(["letters__send", "ok"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_principal_leaves_room_for_others() {
    let store = Arc::<MemoryStore>::default();
    let served = builder(Arc::clone(&store), POLICY).max_tasks_per_principal(2).build().unwrap();
    let (ada, again) = (over_http(&served, "ada").await, over_http(&served, "ada").await);
    let first = task(&ada, "letters__send", json!({"text": "1"})).await;
    task(&again, "letters__send", json!({"text": "2"})).await;
    for client in [&ada, &again] {
        let refused = client.call_tool_once(request("letters__send", json!({"text": "3"}))).await.unwrap_err();
        let ServiceError::McpError(error) = refused else { panic!("{refused}") };
        let expected = json!({"code": "too_many_tasks", "limit": 2});
        assert_eq!((error.code.0, error.data), (-32000, Some(expected)));
        assert!(error.message.contains("limit of 2 waiting calls"), "{}", error.message);
    }
    // Nobody can decide on a call that was refused.
    assert_eq!(waiting(&*store).await.len(), 2);
    let cancelled = json!(["letters__send", "cancelled"]);
    assert_eq!(recorded(&*store).await, [cancelled.clone(), cancelled.clone()]);
    let bob = over_http(&served, "bob").await;
    task(&bob, "letters__send", json!({"text": "4"})).await;
    // One that has ended can still be asked for.
    ada.cancel_task(CancelTaskParams::new(&first.task_id)).await.unwrap();
    assert!(ada.call_tool_once(request("letters__send", json!({"text": "5"}))).await.is_err());
    assert_eq!(get(&ada, &first.task_id).await.unwrap().status(), TaskStatus::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_does_not_last_for_ever() {
    let store = Arc::<MemoryStore>::default();
    let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap()));
    let runner = runner(Arc::clone(&store), POLICY).clock(Arc::clone(&clock)).approval_ttl(Duration::from_mins(1));
    let served = McpServer::builder(runner.build().unwrap(), admitted).build().unwrap();
    let client = piped(&served, OLD).await;
    let created = task(&client, "letters__send", json!({"text": "hello"})).await;
    assert_eq!(created.ttl_ms, Some(660_000));
    clock.advance(Duration::from_secs(61));
    let late = get(&client, &created.task_id).await.unwrap();
    assert!(result(&late)["content"][0]["text"].as_str().unwrap().contains(Outcome::ApprovalExpired.code()));
    clock.advance(Duration::from_secs(601));
    assert_eq!(code(get(&client, &created.task_id).await.unwrap_err()).0, -32602);
    // Nothing of it is left but its record.
    let query = Query::new(DocumentKind::Run);
    while !store.list(&query).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(recorded(&*store).await, [json!(["letters__send", "approval_expired"])]);
}
