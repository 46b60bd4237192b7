//! Servers that list their tools late: they delay only calls of their own tools.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tool_runtime::catalog::{Pick, PickOptions};
use tool_runtime::mcp::serve::{McpServer, Peer};
use tool_runtime::mcp::source::{RemoteServer, ToolSource};
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::source::{NEVER, connect, policy};

/// Adds one.
#[tool(name = "late__next", effect = read_only, redact = ["$"])]
fn next(
    /// The number.
    number: i64,
) -> Result<i64, ToolError> {
    Ok(number + 1)
}

/// A server that answers once the file is there.
fn gated(id: &str, gate: &Path) -> RemoteServer {
    let script = "while [ ! -e \"$0\" ]; do sleep 0.05; done; exec \"$1\" well-behaved";
    let gate = gate.to_str().unwrap();
    RemoteServer::command(id, "/bin/sh")
        .args(["-c", script, gate, env!("CARGO_BIN_EXE_hostile-mcp")])
        .env("PATH", "/usr/bin:/bin")
        .connect_timeout(NEVER)
}

fn mute() -> RemoteServer {
    RemoteServer::command("mute", env!("CARGO_BIN_EXE_hostile-mcp")).args(["never-initialize"]).connect_timeout(NEVER)
}

/// The policy that pins the good tool of the server `s`.
async fn pinned() -> ToolPolicy {
    let known = connect("well-behaved").await;
    let with_servers = policy(&known, &["mcp__s__echo", "late__next", "mcp__mute__echo"], "");
    known.shutdown().await;
    with_servers
}

fn runner(servers: &ToolSource, policy: ToolPolicy) -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<next>().source(servers).build().unwrap();
    ToolRunner::builder(catalog, policy).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_gets_the_tools_of_a_server_when_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let servers = ToolSource::start([mute(), gated("s", &gate)]).unwrap();
    let runner = runner(&servers, pinned().await);
    assert_eq!(runner.catalog().len(), 1);
    let run = runner.run(RunOptions::new());
    let own = run.exec(ToolCall::text("c1", "late__next", r#"{"number":1}"#)).await;
    assert_eq!(own.to_model(), "2");
    let missing = run.exec(ToolCall::text("c2", "mcp__s__echo", r#"{"text":"x"}"#)).await;
    assert_eq!(missing.outcome(), Outcome::Unavailable);

    std::fs::write(&gate, "").unwrap();
    assert!(servers.wait_for("s").await && !servers.wait_for("other").await);
    let names: Vec<_> = runner.catalog().specs().map(|spec| spec.name.to_string()).collect();
    assert!(names.is_sorted() && names.contains(&"mcp__s__echo".to_owned()), "{names:?}");
    assert_eq!(runner.catalog().len(), names.len());
    assert!(run.catalog().get("mcp__s__echo").is_none(), "the tools of a run do not change");
    let later = runner.run(RunOptions::new());
    assert!(later.catalog().get("mcp__s__echo").is_some() && later.catalog().get("mcp__s__env").is_none());
    let said = later.exec(ToolCall::text("c1", "mcp__s__echo", r#"{"text":"x"}"#)).await;
    assert_eq!(said.to_model(), r#"{"text":"x"}"#);
    let wrong = later.exec(ToolCall::text("c2", "mcp__s__echo", "{}")).await;
    assert_eq!(wrong.outcome(), Outcome::ValidationError);
    assert!(runner.warm().is_ok());
    // The mute server is not waited for.
    servers.shutdown().await;
}

/// Rules that do not fit a tool are an error of a runner that knows the tool. A tool that comes later does not run
/// under them.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_comes_late_does_not_run_under_rules_that_do_not_fit_it() {
    let known = connect("well-behaved").await;
    let pin = crate::source::tool(&known, "echo").pin().unwrap();
    let rule = "[[tools.mcp__s__echo.arguments]]\npointer = '/text'\nat_most = 3\notherwise = 'deny'\n";
    for (redact, rule) in [("['txt']", ""), ("['text']", rule)] {
        let text =
            format!("allowed_tools = ['mcp__s__echo']\n[tools.mcp__s__echo]\npin = '{pin}'\nredact = {redact}\n{rule}");
        let policy = ToolPolicy::from_toml(&text).unwrap();
        let catalog = ToolCatalog::builder().source(&known).build().unwrap();
        assert!(ToolRunner::builder(catalog, policy.clone()).build().is_err(), "{redact} {rule}");

        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        let servers = ToolSource::start([gated("s", &gate)]).unwrap();
        let runner = runner(&servers, policy.clone());
        std::fs::write(&gate, "").unwrap();
        assert!(servers.wait_for("s").await);
        let why = runner.catalog().unready(&policy, "mcp__s__echo").unwrap();
        assert_eq!(why.code(), "rules", "{why}");
        let run = runner.run(RunOptions::new());
        let refused = run.exec(ToolCall::text("c", "mcp__s__echo", r#"{"text":"x"}"#)).await;
        assert_eq!((refused.outcome(), refused.executed()), (Outcome::RedactionFailed, false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_a_server_that_has_not_come_are_its_own() {
    let (one, other) = (ToolSource::start([mute()]).unwrap(), ToolSource::start([mute()]).unwrap());
    let error = ToolCatalog::builder().source(&one).source(&other).build().unwrap_err().to_string();
    assert!(error.contains("`mcp__mute__..`"), "{error}");
}

/// A client over a stream.
struct Client {
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
}

impl Client {
    async fn start(server: &McpServer) -> Self {
        let (mine, theirs) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(theirs);
        let server = server.clone();
        tokio::spawn(async move { server.stream(read, write).await });
        let (output, input) = tokio::io::split(mine);
        let mut client = Self { output: BufReader::new(output).lines(), input };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        let agreed = client.read().await;
        assert_eq!(agreed["result"]["capabilities"]["tools"]["listChanged"], json!(true), "{agreed}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn list(&mut self, id: u64) -> Vec<String> {
        self.ask(id, "tools/list", json!({})).await;
        let listed = self.read().await;
        assert_eq!(listed["id"], json!(id), "{listed}");
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn served(runner: &ToolRunner) -> McpServer {
    let admit = |_: &Peer<'_>| Some(RunOptions::new());
    McpServer::builder(runner.clone(), admit).expose("mcp__s__echo", "say").build().unwrap()
}

/// A server that has not answered can still list every name that it could have.
#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_tools_that_come_late_are_checked_when_the_server_is_built() {
    let servers = ToolSource::start([mute(), gated("s", Path::new("/nowhere"))]).unwrap();
    let runner = runner(&servers, pinned().await);
    let code = |exposed: &[(&str, &str)]| {
        let builder = McpServer::builder(runner.clone(), |_: &Peer<'_>| Some(RunOptions::new()));
        let built = exposed.iter().fold(builder, |builder, (tool, name)| builder.expose(*tool, *name)).build();
        built.map_or_else(|error| error.code().to_owned(), |_| "built".to_owned())
    };
    for (exposed, expected) in [
        // Two late tools, and a late tool and a fixed one, by each other's names.
        (&[("mcp__s__echo", "read"), ("mcp__mute__echo", "read")][..], "mcp_name_taken"),
        (&[("mcp__s__echo", "late__next")], "mcp_name_taken"),
        (&[("late__next", "mcp__s__echo")], "mcp_name_taken"),
        (&[("mcp__s__echo", "mcp__mute__echo")], "mcp_name_taken"),
        (&[("mcp__s__echo", "a b")], "mcp_name"),
        (&[("mcp__other__echo", "read")], "mcp_tool_unknown"),
        // A name that its tool has given up is free.
        (&[("mcp__s__echo", "late__next"), ("late__next", "mcp__s__echo")], "built"),
        (&[("mcp__s__echo", "mcp__s__echo"), ("mcp__mute__echo", "read")], "built"),
        // The server that owns the prefix is not one of this catalog.
        (&[("mcp__s__echo", "mcp__other__echo")], "built"),
    ] {
        assert_eq!(code(exposed), expected, "{exposed:?}");
    }
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_served_at_once_and_told_of_servers_that_come() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let servers = ToolSource::start([mute(), gated("s", &gate)]).unwrap();
    let server = served(&runner(&servers, pinned().await));
    let mut client = Client::start(&server).await;
    assert_eq!(client.list(1).await, ["late__next"]);
    client.ask(2, "tools/call", json!({"name": "late__next", "arguments": {"number": 1}})).await;
    assert_eq!(client.read().await["id"], json!(2));
    std::fs::write(&gate, "").unwrap();
    assert_eq!(client.read().await["method"], json!("notifications/tools/list_changed"));
    assert_eq!(client.list(3).await, ["late__next", "say"]);
    client.ask(4, "tools/call", json!({"name": "say", "arguments": {"text": "x"}})).await;
    let said = client.read().await;
    assert_eq!(said["result"]["structuredContent"]["text"], json!("x"), "{said}");
    // A client knows the tool by one name only, like any other tool.
    client.ask(5, "tools/call", json!({"name": "mcp__s__echo", "arguments": {"text": "x"}})).await;
    let unknown = client.read().await;
    assert_eq!(unknown["error"]["code"], json!(-32602), "{unknown}");
    server.close(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_the_server_of_its_tool() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let servers = ToolSource::start([mute(), gated("s", &gate)]).unwrap();
    let server = served(&runner(&servers, pinned().await));
    let mut client = Client::start(&server).await;
    client.ask(1, "tools/call", json!({"name": "say", "arguments": {"text": "x"}})).await;
    // The policy pins no such tool, so nothing is waited for.
    client.ask(2, "tools/call", json!({"name": "mcp__mute__other", "arguments": {}})).await;
    assert_eq!(client.read().await["error"]["code"], json!(-32602));
    client.ask(3, "tools/call", json!({"name": "late__next", "arguments": {"number": 1}})).await;
    assert_eq!(client.read().await["id"], json!(3));
    // One that the policy names and whose server is mute waits alone, until its client gives up.
    client.ask(4, "tools/call", json!({"name": "mcp__mute__echo", "arguments": {}})).await;
    std::fs::write(&gate, "").unwrap();
    let said = client.read().await;
    assert_eq!((&said["id"], &said["result"]["structuredContent"]["text"]), (&json!(1), &json!("x")), "{said}");
    server.close(Duration::ZERO).await;
}

/// A tool that comes late is known by its name in the policy, before it comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_will_come_can_ask_for_an_approval() {
    let asks = [
        "require_approval_for_tools = ['mcp__s__echo']\nallowed_tools = ['mcp__s__echo']",
        "require_approval_for_effects = ['external_side_effect']\nallowed_tools = ['mcp__s__echo']",
    ];
    let pin = format!("[tools.mcp__s__echo]\npin = '{}'\nredact = ['text']\n", "0".repeat(64));
    for rule in asks {
        let servers = ToolSource::start([gated("s", Path::new("/nowhere"))]).unwrap();
        let policy = ToolPolicy::from_toml(&format!("{rule}\n{pin}")).unwrap();
        let builder = |policy| {
            let catalog = ToolCatalog::builder().tool::<next>().source(&servers).build().unwrap();
            ToolRunner::builder(catalog, policy)
        };
        let refused = builder(policy.clone()).build().unwrap_err();
        assert!(refused.to_string().contains("require_approval_for"), "{refused}");
        let admit = |_: &Peer<'_>| Some(RunOptions::new());
        let unreachable = McpServer::builder(builder(policy.clone()).approvals(true).build().unwrap(), admit).build();
        assert_eq!(unreachable.unwrap_err().code(), "mcp_unreachable");
        McpServer::builder(builder(policy).approvals(false).build().unwrap(), admit).build().unwrap();
        // A tool that only reads according to the policy requires no approvals.
        let less = format!("{}\n{pin}effect = 'read_only'", asks[1]);
        builder(ToolPolicy::from_toml(&less).unwrap()).build().unwrap();
        servers.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_came_late_is_picked() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let servers = ToolSource::start([mute(), gated("s", &gate)]).unwrap();
    let runner = runner(&servers, pinned().await);
    let options = PickOptions::new(5);
    let picked = |picks: Vec<Pick>| picks.iter().any(|pick| pick.name.as_str() == "mcp__s__echo");
    let before = runner.run(RunOptions::new());
    assert!(!picked(runner.catalog().pick("echo text", &options)) && !picked(before.pick("echo text", &options)));
    std::fs::write(&gate, "").unwrap();
    assert!(servers.wait_for("s").await);
    assert!(picked(runner.catalog().pick("echo text", &options)));
    let later = runner.run(RunOptions::new());
    assert!(picked(later.pick("echo text", &options)));
    // Nothing that a run may not see, also when it came late.
    assert!(!picked(before.pick("echo text", &options)) && later.pick("environment", &options).is_empty());
    assert_eq!(later.pick("next number", &options)[0].name.as_str(), "late__next");
    servers.shutdown().await;
}
