//! Calls that a server turns into tasks.

use std::sync::Arc;
use std::time::Duration;

use tool_runtime::agent::Input;
use tool_runtime::call::Decider;
use tool_runtime::mcp::serve::{HttpOptions, McpServer, Peer};
use tool_runtime::mcp::source::{RemoteServer, ToolSource};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::source::http::{Way, endpoint, source};
use crate::source::{NEVER, SHORT, call, connect, echoes, policy, run_of, server};

const READ_ONLY: &str = "effect = 'read_only'";

/// Waits for a cancellation that the server received, and returns it.
async fn cancelled(servers: &ToolSource) -> String {
    loop {
        if let Some(told) = was_cancelled(servers).await {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The cancellation that the server received; `None` if it received none yet, or does not answer in time.
async fn was_cancelled(servers: &ToolSource) -> Option<String> {
    let run = run_of(servers, &["mcp__s__what_was_cancelled"], "");
    let told = call(&run, "mcp__s__what_was_cancelled", "{}").await;
    Some(told)
        .filter(|told| told.outcome() == Outcome::Ok)
        .map(|told| told.to_model())
        .filter(|told| told != r#"{"text":""}"#)
}

/// Calls a task that does not end with growing limits, until it was one when its time was up, and was cancelled.
async fn endless(server: impl Fn() -> RemoteServer, more: &str, outcome: Outcome) {
    endless_with(|limit| (server().call_timeout(limit), more.to_owned()), outcome).await;
}

/// The same for a limit in the settings of the server or in the policy.
async fn endless_with(limited: impl Fn(Duration) -> (RemoteServer, String), outcome: Outcome) {
    let mut limit = SHORT;
    loop {
        let (server, more) = limited(limit);
        let servers = ToolSource::connect([server]).await.unwrap();
        let name = "mcp__s__endless";
        let result = call(&run_of(&servers, &[name], &more), name, "{}").await;
        assert_eq!(result.outcome(), outcome, "{:?}", result.detail());
        for _ in 0..10 {
            if let Some(told) = was_cancelled(&servers).await {
                assert_eq!(told, r#"{"text":"endless"}"#);
                return servers.shutdown().await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        servers.shutdown().await;
        limit *= 2;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_awaited_to_whatever_end_it_has() {
    for (raw, outcome, reading, is_cancelled) in [
        ("done", Outcome::Ok, Outcome::Ok, false),
        ("lazy", Outcome::Ok, Outcome::Ok, false),
        ("failed", Outcome::ExecutionError, Outcome::ExecutionError, false),
        ("given_up", Outcome::OutcomeUnknown, Outcome::Cancelled, false),
        ("changed", Outcome::OutcomeUnknown, Outcome::Cancelled, true),
        ("asks", Outcome::OutcomeUnknown, Outcome::Cancelled, true),
        ("asked", Outcome::OutcomeUnknown, Outcome::Cancelled, false),
        ("large", Outcome::ResultTooLarge, Outcome::ResultTooLarge, true),
        ("garbage", Outcome::OutputInvalid, Outcome::OutputInvalid, true),
        ("forgotten", Outcome::OutcomeUnknown, Outcome::Cancelled, true),
        ("no_id", Outcome::OutcomeUnknown, Outcome::Cancelled, false),
        ("old", Outcome::OutcomeUnknown, Outcome::Cancelled, false),
    ] {
        let name = format!("mcp__s__{raw}");
        for (more, outcome) in [("", outcome), (READ_ONLY, reading)] {
            let servers = connect("tasks").await;
            let result = call(&run_of(&servers, &[&name], more), &name, "{}").await;
            assert_eq!(result.outcome(), outcome, "{raw}: {:?}", result.detail());
            if is_cancelled {
                assert_eq!(cancelled(&servers).await, format!(r#"{{"text":"{raw}"}}"#));
            }
            echoes(&servers).await;
            servers.shutdown().await;
        }
    }
    endless(|| server("s", "tasks"), "", Outcome::OutcomeUnknown).await;
    endless(|| server("s", "tasks"), READ_ONLY, Outcome::Timeout).await;
}

/// The effect may exist before the poll that fails, so the same call does not start again by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_poll_says_nothing_about_the_effect() {
    for status in ["404 Not Found", "400 Bad Request", "307 Temporary Redirect"] {
        let endpoint = endpoint("tasks", Way::Refuses("tasks/get", status)).await;
        for (more, outcome, calls) in [("", Outcome::OutcomeUnknown, 1), (READ_ONLY, Outcome::Cancelled, 2)] {
            endpoint.requests.lock().await.clear();
            let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
            let run = run_of(&servers, &["mcp__s__done"], more);
            let first = call(&run, "mcp__s__done", "{}").await;
            assert_eq!(first.outcome(), outcome, "{status}: {:?}", first.detail());
            let why = first.detail().unwrap_or_default();
            assert!(why.contains("could not be polled") && why.contains(&status[..3]), "{why}");
            let _ = call(&run, "mcp__s__done", "{}").await;
            let requests = endpoint.requests.lock().await.clone();
            assert_eq!(requests.iter().filter(|request| request.contains("\"tools/call\"")).count(), calls, "{status}");
            servers.shutdown().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_nobody_waits_for_any_more_is_cancelled() {
    for (more, outcome) in [("", Outcome::OutcomeUnknown), (READ_ONLY, Outcome::Timeout)] {
        // The policy's limit is the shorter one.
        let limit = |limit: Duration| {
            let budget = format!("[budgets.tools.mcp__s__endless]\nmax_runtime_ms = {}", limit.as_millis());
            (server("s", "tasks"), format!("{more}\n{budget}"))
        };
        endless_with(limit, outcome).await;
    }
    let endpoint = endpoint("tasks", Way::Json).await;
    let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
    let store = Arc::<MemoryStore>::default();
    let catalog = ToolCatalog::builder().source(&servers).build().unwrap();
    let runner = ToolRunner::builder(catalog, policy(&servers, &["mcp__s__endless"], "")).store(Arc::clone(&store));
    let run = runner.build().unwrap().run(RunOptions::new());
    let (stop, requests) = (run.clone(), Arc::clone(&endpoint.requests));
    tokio::spawn(async move {
        // Once the call is a task.
        while !requests.lock().await.iter().any(|request| request.contains("\"tasks/get\"")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    });
    assert_eq!(call(&run, "mcp__s__endless", "{}").await.outcome(), Outcome::OutcomeUnknown);
    assert_eq!(cancelled(&servers).await, r#"{"text":"endless"}"#);
    assert_eq!(store.calls(&RecordFilter::default()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_asked_about_over_http_too() {
    for scenario in ["tasks", "stateless-tasks"] {
        let endpoint = endpoint(scenario, Way::Json).await;
        let servers = ToolSource::connect([source(&endpoint)]).await.unwrap();
        let run = run_of(&servers, &["mcp__s__done"], "");
        assert_eq!(call(&run, "mcp__s__done", "{}").await.outcome(), Outcome::Ok);
        endless(|| source(&endpoint), "", Outcome::OutcomeUnknown).await;
        let requests = endpoint.requests.lock().await.clone();
        let asked: Vec<_> = requests.iter().filter(|request| request.contains("\"tasks/get\"")).collect();
        assert!(asked.len() >= 3, "{asked:?}");
        let declared = "io.modelcontextprotocol/tasks";
        assert!(requests[0].contains(declared) || scenario != "tasks", "{}", requests[0]);
        if scenario == "stateless-tasks" {
            for request in asked {
                assert!(request.contains("mcp-method: tasks/get\r\n") && request.contains(declared), "{request}");
                assert!(request.contains("mcp-name: done") || request.contains("mcp-name: endless"), "{request}");
            }
        }
        servers.shutdown().await;
    }
}

/// Sends a letter.
#[tool(name = "letters__send", effect = external_side_effect, redact = ["$"])]
fn send(
    /// The text.
    text: String,
) -> Result<usize, ToolError> {
    Ok(text.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_here_for_an_approval_over_there() {
    let store = Arc::<MemoryStore>::default();
    let text = "allowed_tools = ['letters__send']\nrequire_approval_for_tools = ['letters__send']";
    let runner = ToolRunner::builder(
        ToolCatalog::builder().tool::<send>().build().unwrap(),
        ToolPolicy::from_toml(text).unwrap(),
    );
    let runner = runner.approvals(true).store(Arc::clone(&store)).build().unwrap();
    let server = McpServer::builder(runner, |_: &Peer<'_>| Some(RunOptions::new().principal("ada"))).build().unwrap();
    let (address, serving) = server.bind("127.0.0.1:0".parse().unwrap(), &HttpOptions::new()).await.unwrap();
    let url = format!("http://{address}/mcp");
    tokio::spawn(serving);
    let servers = ToolSource::connect([RemoteServer::url("s", url).call_timeout(NEVER)]).await.unwrap();
    assert!(servers.notes().is_empty(), "{:?}", servers.notes());

    let name = "mcp__s__letters__send";
    let pinned = servers.tools().pop().and_then(|tool| tool.pin()).unwrap();
    let rules = format!("allowed_tools = ['{name}']\n[tools.{name}]\npin = '{pinned}'\nredact = ['result']");
    let here = Arc::<MemoryStore>::default();
    let catalog = ToolCatalog::builder().source(&servers).build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&rules).unwrap()).store(Arc::clone(&here));
    let run = runner.build().unwrap().run(RunOptions::new());
    let calling = tokio::spawn(async move { run.exec(ToolCall::text("c1", name, r#"{"text":"hello"}"#)).await });
    let call = loop {
        if let Some(call) = tests::pending_calls(&*store, &RecordFilter::default()).await.pop() {
            break call;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let approved = Input::new().decide(&call.question(), ApprovalDecision::Approve, &Decider::new("grace"));
    // The task is there before its run is.
    let queue = tests::queue(Arc::clone(&store));
    while queue.post(&call.run_id, None, &approved).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let result = calling.await.unwrap();
    assert_eq!((result.outcome(), result.to_model().as_str()), (Outcome::Ok, r#"{"result":5}"#));
    for store in [here, store] {
        assert_eq!(store.calls(&RecordFilter::default()).await.unwrap().len(), 1, "one record on each side");
    }
}
