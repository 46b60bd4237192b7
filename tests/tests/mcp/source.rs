//! Untrusted servers: an attack ends soon, enables no tool, shows no secret and does not affect other tools.

mod accounts;
mod calls;
mod http;
mod late;
mod listens;
mod lists;
#[cfg(target_os = "linux")]
mod memory;
mod pins;
mod processes;
mod tasks;

use std::fmt::Write as _;
use std::time::Duration;

use tests::hostile::CANARY;
use tool_runtime::mcp::source::{McpTool, RemoteServer, ToolSource};
use tool_runtime::{Run, RunOptions, ToolCall, ToolCatalog, ToolExecResult, ToolPolicy, ToolRunner};

/// The limit for a server that answers, however busy the machine is. No test waits for its end.
const NEVER: Duration = Duration::from_hours(1);

/// The limit for a server that never answers. A test that uses it does not check how fast anything is.
const SHORT: Duration = Duration::from_millis(500);

/// A server in a scenario.
fn server(id: &str, scenario: &str) -> RemoteServer {
    RemoteServer::command(id, env!("CARGO_BIN_EXE_hostile-mcp"))
        .args([scenario])
        .connect_timeout(NEVER)
        .call_timeout(NEVER)
}

async fn connect(scenario: &str) -> ToolSource {
    ToolSource::connect([server("s", scenario)]).await.expect("a source")
}

/// Connects with growing limits until there is such a note, because a busy machine gives no answer in time at first.
async fn noted(note: &str, servers: impl Fn(Duration) -> Vec<RemoteServer>) -> ToolSource {
    let mut limit = SHORT;
    loop {
        let found = ToolSource::connect(servers(limit)).await.expect("a source");
        let notes = found.notes();
        if notes.values().any(|found| found.contains(note)) {
            return found;
        }
        assert!(notes.values().any(|found| found.contains("did not answer in time")), "{note}: {notes:?}");
        found.shutdown().await;
        limit *= 2;
    }
}

/// A policy that pins these tools of the servers as they are now, and shows their text.
fn policy(servers: &ToolSource, names: &[&str], more: &str) -> ToolPolicy {
    let mut text = format!("allowed_tools = {names:?}\n");
    for tool in servers.tools() {
        let (Some(name), Some(pin)) = (tool.name(), tool.pin()) else { continue };
        if names.contains(&name) {
            let shown = match tool.definition().expect("a definition").get("outputSchema") {
                Some(_) => "['id', '$media']",
                None => "['text', 'resources.uri', '$media']",
            };
            let _ = write!(text, "[tools.{name}]\npin = '{pin}'\nredact = {shown}\n{more}\n");
        }
    }
    ToolPolicy::from_toml(&text).expect("a policy")
}

fn run_under(servers: &ToolSource, policy: ToolPolicy) -> Run {
    let catalog = ToolCatalog::builder().source(servers).build().expect("a catalog");
    ToolRunner::builder(catalog, policy).build().expect("a runner").run(RunOptions::new())
}

fn run_of(servers: &ToolSource, names: &[&str], more: &str) -> Run {
    run_under(servers, policy(servers, names, more))
}

async fn call(run: &Run, tool: &str, arguments: &str) -> ToolExecResult {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let id = format!("c{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let result = run.exec(ToolCall::text(id, tool, arguments)).await;
    assert!(!format!("{result:?}{}", result.to_model()).contains(CANARY), "a secret got out of {tool}");
    result
}

/// The good tool works.
async fn echoes(servers: &ToolSource) {
    let run = run_of(servers, &["mcp__s__echo"], "");
    let result = call(&run, "mcp__s__echo", r#"{"text":"still here"}"#).await;
    assert_eq!(result.to_model(), r#"{"text":"still here"}"#);
}

fn tool(servers: &ToolSource, raw: &str) -> McpTool {
    servers.tools().into_iter().find(|tool| tool.raw_name() == raw).expect("a tool of this name")
}

/// Why a tool is kept out.
fn quarantine(servers: &ToolSource, raw: &str) -> &'static str {
    let (tool, policy) = (tool(servers, raw), ToolPolicy::deny_all());
    assert_eq!(tool.state(&policy), "quarantined", "{raw}");
    tool.problem(&policy).expect("the reason").code()
}
