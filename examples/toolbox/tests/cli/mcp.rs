//! Tests `mcp serve` and `mcp pin`.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use office_tools::mail::{Mail, Mailer, send_email};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tool_runtime::store::Store as _;
use tool_runtime::{Capabilities, Outcome, RunOptions, ToolCall, ToolCatalog, ToolPolicy, ToolRunner};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::rig::Rig;

/// A client with tasks, connected to a server by a pipe.
struct Patient {
    server: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    id: u64,
}

impl Patient {
    fn start(rig: &Rig) -> Self {
        Self::declaring(rig, &json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}))
    }

    /// A client without tasks.
    fn plain(rig: &Rig) -> Self {
        Self::declaring(rig, &json!({}))
    }

    fn declaring(rig: &Rig, declared: &Value) -> Self {
        Self::of(rig.start(&["--store", "sqlite:store.db", "mcp", "serve"]), declared)
    }

    fn of(mut server: Child, declared: &Value) -> Self {
        let (input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let mut patient = Self { server, input, output: BufReader::new(output).lines(), id: 0 };
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": declared, "clientInfo": client});
        let agreed = patient.ask("initialize", &params);
        assert!(agreed["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{agreed}");
        writeln!(patient.input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
        patient
    }

    /// Sends a request, and returns its result.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.answered(method, params);
        assert_eq!(answer["error"], Value::Null);
        answer["result"].take()
    }

    /// Sends a request, and returns the answer.
    fn answered(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        writeln!(self.input, "{request}").unwrap();
        let answer: Value = serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], json!(self.id));
        answer
    }

    /// Polls a task until it ends.
    fn ended(&mut self, task: &Value) -> Value {
        loop {
            let said = self.ask("tasks/get", &json!({"taskId": task}));
            if !matches!(said["status"].as_str(), Some("working" | "input_required")) {
                return said;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn close(mut self) {
        drop(self.input);
        self.server.wait().unwrap();
    }
}

#[test]
fn a_call_that_waits_is_a_task_that_somebody_decides_on_at_a_terminal() {
    let rig = Rig::new();
    let mut client = Patient::start(&rig);
    let mail = json!({"to": ["ada@example.com"], "subject": "Hello", "body": "Canary"});
    let send = |client: &mut Patient| {
        let task = client.ask("tools/call", &json!({"name": "mail__send_email", "arguments": mail}));
        assert_eq!(task["status"], "input_required", "{task}");
        task["taskId"].clone()
    };
    let first = send(&mut client);
    let approve = ["--store", "sqlite:store.db", "--json", "approvals"];
    let decide = |words: &[&str]| rig.run(&[&approve[..], words].concat());
    let listed = decide(&["list"]).code(0).json();
    let call = listed[0]["id"].as_str().unwrap().to_owned();
    assert!(first.as_str().unwrap().ends_with(&call), "{first} {listed}");
    assert_eq!(rig.mails(), 0);
    let told = decide(&["approve", &call, "--as", "grace", "--wait", "1h"]).code(0).json();
    assert_eq!((&told["state"], &told["outcome"]), (&json!("ended"), &json!("ok")), "{told}");
    assert_eq!((&client.ended(&first)["status"], rig.mails()), (&json!("completed"), 1));
    let waits = send(&mut client);
    client.close();

    // The server has ended. The next server carries the decision out when its client polls.
    let call = decide(&["list"]).json()[0]["id"].as_str().unwrap().to_owned();
    let told = decide(&["deny", &call, "Not today.", "--as", "grace"]).code(0).json();
    assert_eq!(told["state"], "posted", "{told}");
    let mut client = Patient::start(&rig);
    let denied = client.ended(&waits);
    assert!(denied["result"]["content"][0]["text"].as_str().unwrap().contains("Not today."), "{denied}");
    assert_eq!((&client.ended(&first)["status"], rig.mails()), (&json!("completed"), 1));
    client.close();
    let records = rig.run(&["--store", "sqlite:store.db", "--json", "audit", "show"]).code(0).stdout;
    let calls = records.matches("\"approval_denied\"").count();
    assert!(calls >= 1 && !records.contains("Canary"), "{records}");
}

#[test]
fn a_client_at_a_pipe_calls_through_the_gate() {
    let rig = Rig::new();
    let mut server = rig.start(&["-v", "--store", "sqlite:store.db", "mcp", "serve"]);
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut said = move || -> Value { serde_json::from_str(&output.next().unwrap().unwrap()).unwrap() };
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).unwrap();
    assert_eq!(said()["result"]["serverInfo"]["name"], "toolbox");
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).unwrap();
    let listed = said();
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "core__now" || tool["annotations"]["readOnlyHint"] == true));
    let params = json!({"name": "nothing__there", "arguments": {}});
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})).unwrap();
    assert_eq!(said()["error"]["code"], -32602);
    drop(input);
    let ended = server.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stdout.is_empty());
}

/// A server runs for days, so it reports a lost record at once and not at its end.
#[test]
fn a_record_that_a_server_loses_is_reported_at_once() {
    let rig = Rig::new();
    let mut client = Patient::plain(&rig);
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON tool_runtime_records BEGIN SELECT RAISE(ABORT, 'no'); END";
    rusqlite::Connection::open(rig.path("store.db")).unwrap().execute(refuse, []).unwrap();
    let called = client.ask("tools/call", &json!({"name": "core__get_current_time", "arguments": {}}));
    assert_eq!(called["isError"], false, "{called}");
    let mut messages = BufReader::new(client.server.stderr.take().unwrap()).lines();
    let lost = messages.find(|line| line.as_ref().unwrap().contains("a record could not be stored"));
    assert!(lost.is_some() && client.server.try_wait().unwrap().is_none(), "{lost:?}");
    drop(client.input);
    assert_eq!(client.server.wait().unwrap().code(), Some(1));
}

#[test]
fn a_server_whose_calls_nobody_can_decide_on_does_not_start() {
    let rig = Rig::new();
    for words in [&["mcp", "serve"][..], &["mcp", "serve", "--http", "127.0.0.1:0"]] {
        let ended = rig.run(words);
        assert_eq!(ended.code, 2);
        assert!(
            ended.stderr.contains("no person can reach them") && ended.stderr.contains("--store"),
            "{}",
            ended.stderr
        );
    }
}

/// A mail server that accepts a mail and does not answer.
struct Silent(Arc<Notify>);

#[async_trait]
impl Mailer for Silent {
    async fn send(&self, _: &Mail, _: &str) -> Result<(), office_tools::Failure> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Without `--store`, `approvals` does not read the store of the server. The policy requires no approval, but a call
/// waits because the outcome of an equal call is unknown.
#[tokio::test]
async fn a_call_that_nobody_can_decide_on_does_not_wait() {
    const ALLOWED: &str = "allowed_tools = ['mail__send_email', 'core__get_current_time']\n";
    let rig = Rig::new();
    rig.write("allowed.toml", ALLOWED);
    let server = ["--policy", "allowed.toml", "mcp", "serve"];
    // The server creates the data folder.
    Patient::of(rig.start(&server), &json!({})).close();
    let store = Arc::new(SqlStore::sqlite(rig.path("data/tool-runtime.db"), SqlOptions::new()).await.unwrap());
    let mail = json!({"to": ["ada@example.com"], "subject": "Hello", "body": "Canary"});
    let (sent, catalog) = (Arc::new(Notify::new()), ToolCatalog::builder().tool::<send_email>().build().unwrap());
    let run = ToolRunner::builder(catalog, ToolPolicy::allow(["mail__send_email"]))
        .capabilities(Capabilities::new().with(Arc::new(Silent(Arc::clone(&sent))) as Arc<dyn Mailer>))
        .approvals(true)
        .store(Arc::clone(&store))
        .build()
        .unwrap()
        .run(RunOptions::new().run_id("elsewhere").principal("ada").tenant("example-org"));
    let call = run.exec(ToolCall::text("c1", "mail__send_email", mail.to_string()));
    let cut = async {
        sent.notified().await;
        run.cancel();
    };
    let (unknown, ()) = tokio::join!(call, cut);
    assert_eq!(unknown.outcome(), Outcome::OutcomeUnknown);
    store.flush().await.unwrap();
    let mut client = Patient::of(rig.start(&server), &json!({}));
    let refused = client.answered("tools/call", &json!({"name": "mail__send_email", "arguments": mail}));
    assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["code"]), (&json!(-32000), &json!("no_decider")));
    assert_eq!(
        (rig.mails(), rig.run(&["--store", "sqlite:data/tool-runtime.db", "--json", "approvals", "list"]).json()),
        (0, json!([]))
    );
    // After the outcome is settled, the call runs.
    rig.run(&["outcomes", "settle", "elsewhere/c1", "--did-not-happen", "--as", "grace"]).code(0);
    let done = client.ask("tools/call", &json!({"name": "mail__send_email", "arguments": mail}));
    assert_eq!((&done["isError"], rig.mails()), (&json!(false), 1), "{done}");
    client.close();
}

#[test]
fn a_call_that_waits_is_decided_for_a_client_that_knows_no_tasks() {
    let rig = Rig::new();
    let approvals = |words: &[&str]| rig.run(&[&["--store", "sqlite:store.db", "--json", "approvals"], words].concat());
    let mail = json!({"to": ["ada@example.com"], "subject": "Hello", "body": "Canary"});
    let call = json!({"name": "mail__send_email", "arguments": mail});
    // With a running server, and after it has ended.
    for round in 1..=2 {
        let mut client = Patient::plain(&rig);
        let waits = client.ask("tools/call", &call);
        assert!(waits["content"][0]["text"].as_str().unwrap().contains("Make the same call again"), "{waits}");
        if round == 2 {
            client.close();
            client = Patient::plain(&rig);
        }
        let listed = approvals(&["list"]).code(0).json();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        let told = approvals(&["approve", listed[0]["id"].as_str().unwrap(), "--as", "grace"]).code(0).json();
        assert_eq!((&told["state"], rig.mails()), (&json!("posted"), round - 1), "{told}");
        let done = client.ask("tools/call", &call);
        assert_eq!((&done["isError"], rig.mails()), (&json!(false), round), "{done}");
        client.close();
    }
}

#[test]
fn an_address_that_cannot_be_used_is_refused() {
    let rig = Rig::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = rig.run(&["--store", "sqlite:store.db", "mcp", "serve", "--http", &address]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("in use by another process"), "{}", ended.stderr);
    let ended = rig.run(&["--store", "sqlite:store.db", "mcp", "serve", "--http", "0.0.0.0:0"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("not a loopback address"), "{}", ended.stderr);
}

#[test]
fn an_address_that_is_none_says_what_one_looks_like() {
    let ended = Rig::new().run(&["mcp", "serve", "--http", "nonsense"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("such as 127.0.0.1:8080"), "{}", ended.stderr);
}

#[cfg(unix)]
#[test]
fn a_command_that_is_no_server_is_told_from_one_that_ends() {
    let ended = Rig::new().run(&["mcp", "tools", "--", "/bin/sh", "-c", "echo garbage"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("is not MCP") && !ended.stderr.contains("garbage"), "{}", ended.stderr);
}

/// The tool of the server, and its name in this catalog.
const CLOCK: &str = "core__get_current_time";
const BROUGHT_IN: &str = "mcp__s__core__get_current_time";

/// A toolbox that uses another toolbox as an MCP server, with a policy of its own.
struct Chain {
    rig: Rig,
    server: Vec<String>,
}

impl Chain {
    fn new() -> Self {
        let rig = Rig::new();
        let policy = rig.write("server.toml", &format!("allowed_tools = ['{CLOCK}']\n"));
        let server = [env!("CARGO_BIN_EXE_toolbox"), "--policy", &policy.display().to_string(), "mcp", "serve"];
        let server = server.map(str::to_owned).to_vec();
        let command: Vec<_> = server.iter().map(|word| format!("{word:?}")).collect();
        rig.write(
            "client.toml",
            &format!("allowed_tools = ['{BROUGHT_IN}']\n[tools.{BROUGHT_IN}]\nredact = ['iso']\n"),
        );
        rig.write(
            "config.toml",
            &format!("[mcp.servers.s]\ncommand = [{}]\nenv = ['PATH', 'HOME']\n", command.join(", ")),
        );
        Self { rig, server }
    }

    /// Runs a command with the server's configuration.
    fn about(&self, words: &[&str]) -> crate::rig::Ended {
        let head = ["--policy", "client.toml", "--json", "mcp"];
        let server = self.server.iter().map(String::as_str);
        let id = ["--id", "s", "--env", "HOME", "--"];
        let words: Vec<_> = head.into_iter().chain(words.iter().copied()).chain(id).chain(server).collect();
        self.rig.run(&words)
    }

    fn state(&self) -> String {
        let listed = self.about(&["tools"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        let row: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
        assert_eq!(row["name"], BROUGHT_IN);
        row["state"].as_str().unwrap().to_owned()
    }

    fn policy(&self) -> String {
        std::fs::read_to_string(self.rig.path("client.toml")).unwrap()
    }

    /// Returns the exit code of a call of the tool.
    fn call(&self) -> i32 {
        self.rig.run(&["--config", "config.toml", "--policy", "client.toml", "call", BROUGHT_IN, "{}"]).code
    }
}

#[test]
fn a_definition_is_pinned_and_refused_when_it_changes_until_it_is_pinned_again() {
    let chain = Chain::new();
    assert_eq!(chain.state(), "discovered");
    let refused = chain.about(&["pin"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("new") && refused.stderr.contains("readOnlyHint"), "{}", refused.stderr);
    assert!(!chain.policy().contains("pin ="), "nothing is written without a yes");
    assert_eq!(chain.about(&["pin", "--yes"]).code, 0);
    let first = chain.policy();
    assert!(first.contains("pin = \"") && first.contains("redact = ['iso']"), "{first}");
    assert_eq!((chain.state().as_str(), chain.call()), ("enabled", 0));

    // The server's definition now claims that its tool writes.
    chain.rig.write("server.toml", &format!("allowed_tools = ['{CLOCK}']\n[tools.{CLOCK}]\neffect = 'state_change'\n"));
    assert_eq!(chain.state(), "drifted");
    assert_ne!(chain.call(), 0);
    let shown = chain.about(&["pin"]);
    assert_eq!(shown.code, 2);
    let changed = |sign: char| {
        shown.stderr.lines().any(|line| line.trim_start().starts_with(sign) && line.contains("readOnlyHint"))
    };
    assert!(changed('-') && changed('+'), "{}", shown.stderr);
    assert_eq!(chain.policy(), first, "nothing is written without a yes");
    assert_eq!(chain.about(&["pin", "--yes"]).code, 0);
    assert_ne!(chain.policy(), first);
    assert_eq!((chain.state().as_str(), chain.call()), ("enabled", 0));
    let picked = chain.rig.run(&["--config", "config.toml", "--policy", "client.toml", "pick", "current time"]).code(0);
    assert!(picked.stdout.contains(BROUGHT_IN), "{picked:?}");
    assert_eq!(chain.about(&["pin", "--yes"]).code, 0, "there is nothing to pin");
}

#[test]
fn a_mute_server_delays_no_other_tool() {
    let rig = Rig::new();
    rig.write(
        "config.toml",
        "[mcp.servers.mute]\ncommand = ['/bin/sleep', '100000']\nconnect_timeout_ms = 1000000000\n",
    );
    rig.run(&["--config", "config.toml", "call", CLOCK, "{}"]).code(0);
    rig.run(&["--config", "config.toml", "show", CLOCK]).code(0);
    let mut server = rig.start(&["--config", "config.toml", "--store", "sqlite:records.db", "mcp", "serve"]);
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).unwrap();
    let said = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(said.contains("listChanged"), "{said}");
    drop(input);
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_last_words_of_a_server_are_shown_to_operators() {
    let rig = Rig::new();
    let script = "echo 'BRAVE_API_KEY environment variable is required' >&2; printf '\\033[31mred\\007' >&2; exit 1";
    let ended = rig.run(&["mcp", "tools", "--id", "brave", "--", "/bin/sh", "-c", script]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("`brave`: down: the connection ended"), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  BRAVE_API_KEY environment variable is required\n  red\n"), "{}", ended.stderr);
    rig.write("config.toml", &format!("[mcp.servers.brave]\ncommand = ['/bin/sh', '-c', {script:?}]\n"));
    rig.write("policy.toml", "allowed_tools = ['mcp__brave__search']\n");
    let head = ["--config", "config.toml", "--policy", "policy.toml"];
    let called = rig.run(&[&head[..], &["-v", "call", "mcp__brave__search", "{}"]].concat());
    assert!(called.stderr.contains("BRAVE_API_KEY") && !called.stdout.contains("BRAVE_API_KEY"), "{called:?}");
    assert!(called.stderr.contains("its server is down: the connection ended"), "{called:?}");
    let checked = rig.run(&[&head[..], &["check"]].concat());
    assert_eq!(checked.code, 1);
    assert!(
        checked.stdout.contains("`mcp__brave__search` is allowed but cannot run: its server is down"),
        "{checked:?}"
    );
}

#[test]
fn a_tool_is_ready_only_if_it_can_run() {
    let chain = Chain::new();
    let head = ["--config", "config.toml", "--policy", "client.toml"];
    let run = |words: &[&str]| chain.rig.run(&[&head[..], words].concat());
    let ready = |code: &str, why: &str| {
        let checked = run(&["check"]);
        assert_eq!(checked.code, 1, "{checked:?}");
        assert!(checked.stdout.contains(BROUGHT_IN) && checked.stdout.contains(why), "{checked:?}");
        let explained = run(&["--json", "policy", "explain", BROUGHT_IN]);
        assert_ne!(explained.code, 0, "{explained:?}");
        let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
        assert_eq!(explained["unready"]["code"], code, "{explained}");
        let listed: Value = serde_json::from_str(&run(&["--json", "list"]).stdout).unwrap();
        let row = listed.as_array().unwrap().iter().find(|row| row["name"] == BROUGHT_IN).unwrap();
        assert_eq!(row["unready"], code, "{row}");
        let called = run(&["call", BROUGHT_IN, "{}"]);
        assert_ne!(called.code, 0);
        assert!(called.stderr.contains(why) && !called.stdout.contains(why), "{called:?}");
    };
    let allowed = format!("allowed_tools = ['{BROUGHT_IN}']\n[servers.s]\neffect = 'read_only'\n");
    chain.rig.write("client.toml", &allowed);
    ready("not_pinned", "the policy pins no definition of it");
    assert_eq!(chain.state(), "discovered");

    assert_eq!(chain.about(&["pin", "--yes"]).code, 0);
    let pinned = chain.policy();
    assert!(pinned.contains("redact = [] # shows nothing; it can name: ") && pinned.contains("iso"), "{pinned}");
    let without: String = pinned.split_inclusive('\n').filter(|line| !line.starts_with("redact")).collect();
    chain.rig.write("client.toml", &without);
    ready("no_allowlist", "write `redact`");
    assert_eq!(chain.state(), "unready");

    chain.rig.write("client.toml", &without.replace("pin = ", "redact = ['iso']\npin = "));
    let checked = run(&["check"]);
    assert!(checked.code == 0 && checked.stdout.contains("in order"), "{checked:?}");
    let listed: Value = serde_json::from_str(&run(&["--json", "list"]).stdout).unwrap();
    let row = listed.as_array().unwrap().iter().find(|row| row["name"] == BROUGHT_IN).unwrap();
    assert_eq!((&row["effect"], &row["unready"]), (&json!("read_only"), &Value::Null), "the effect is the policy's");
    assert_eq!((chain.state().as_str(), chain.call()), ("enabled", 0));

    chain.rig.write("server.toml", &format!("allowed_tools = ['{CLOCK}']\n[tools.{CLOCK}]\neffect = 'state_change'\n"));
    ready("drifted", "its definition is not the one that the policy pins");
}

#[test]
fn only_tools_that_the_policy_allows_are_pinned() {
    let chain = Chain::new();
    chain.rig.write("server.toml", &format!("allowed_tools = ['{CLOCK}', 'notes__list_notes']\n"));
    chain.rig.write("client.toml", "# mine\n");
    let refused = chain.about(&["pin", "--yes"]);
    assert!(refused.code == 2 && refused.stderr.contains("--all"), "{refused:?}");
    chain.rig.write("client.toml", &format!("allowed_tools = ['{BROUGHT_IN}']\n"));
    assert_eq!(chain.about(&["pin", "--yes"]).code, 0);
    assert_eq!(chain.policy().matches("pin = ").count(), 1, "{}", chain.policy());
    assert_eq!(chain.about(&["pin", "--yes", "--all"]).code, 0);
    assert_eq!(chain.policy().matches("pin = ").count(), 2, "{}", chain.policy());
}

/// A server in the shell, which offers these tools.
#[cfg(unix)]
fn offering(tools: &Value) -> String {
    let listed = json!({ "tools": tools }).to_string();
    assert!(!listed.contains('\''));
    let begun =
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
    format!(
        r#"while read -r line; do
            case "$line" in
                *'"method":"initialize"'*) answer='"result":{begun}' ;;
                *'"method":"tools/list"'*) answer='"result":{listed}' ;;
                *) answer='"error":{{"code":-32601,"message":"no such method"}}' ;;
            esac
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}}]*\).*/\1/p')
            if [ -n "$id" ]; then printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$answer"; fi
        done"#
    )
}

#[cfg(unix)]
#[test]
fn a_rejected_tool_is_named_and_not_pinned() {
    let rig = Rig::new();
    let script = offering(&json!([
        {"name": "run", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
    ]));
    let pin = |policy: &str, words: &[&str]| {
        rig.write("client.toml", policy);
        let head = ["--policy", "client.toml", "mcp", "pin", "--yes"];
        rig.run(&[&head[..], words, &["--id", "s", "--", "/bin/sh", "-c", &script]].concat())
    };
    let allowed = "allowed_tools = ['mcp__s__run']\n";
    for (policy, words) in
        [(allowed, &[][..]), ("", &["--all"]), (allowed, &["--all"]), ("", &["--tool", "mcp__s__run"])]
    {
        let ended = pin(policy, words).code(1);
        assert!(ended.stderr.contains("`mcp__s__run` cannot be pinned: unsupported_execution: "), "{ended:?}");
        assert!(!ended.stderr.contains("already") && !ended.stderr.contains("allowed_tools"), "{ended:?}");
        assert_eq!(std::fs::read_to_string(rig.path("client.toml")).unwrap(), policy);
    }
    let unknown = pin("", &["--tool", "mcp__other__go"]).code(2).stderr;
    let message = "no server offers a tool `mcp__other__go`; `mcp tools` lists what they offer";
    assert!(unknown.contains(message), "{unknown}");
}

#[cfg(unix)]
#[test]
fn pinning_fails_if_a_server_is_down() {
    let chain = Chain::new();
    chain.rig.write("client.toml", "");
    let alone = ["--policy", "client.toml", "mcp", "pin", "--yes", "--id", "gone", "--", "/bin/false"];
    let ended = chain.rig.run(&alone).code(1);
    assert!(ended.stderr.contains("`gone`: down") && !ended.stderr.contains("already"), "{ended:?}");
    let named = [&alone[..5], &["--tool", "mcp__gone__run"], &alone[5..]].concat();
    let ended = chain.rig.run(&named).code(1);
    assert!(ended.stderr.contains("`gone`: down") && ended.stderr.contains("mcp__gone__run"), "{ended:?}");
    // The tools of another server are pinned.
    chain.rig.write("client.toml", &format!("allowed_tools = ['{BROUGHT_IN}']\n"));
    let config = std::fs::read_to_string(chain.rig.path("config.toml")).unwrap();
    chain.rig.write("config.toml", &format!("{config}[mcp.servers.gone]\ncommand = ['/bin/false']\n"));
    for is_pinned in [false, true] {
        let ended =
            chain.rig.run(&["--config", "config.toml", "--policy", "client.toml", "mcp", "pin", "--yes"]).code(1);
        assert!(ended.stderr.contains("`gone`: down"), "{ended:?}");
        assert_eq!(ended.stderr.contains("already"), is_pinned, "{ended:?}");
        assert_eq!(chain.policy().matches("pin = ").count(), 1, "{}", chain.policy());
    }
}

#[cfg(unix)]
#[test]
fn the_comment_of_a_pin_names_what_an_allowlist_can_name() {
    let rig = Rig::new();
    let text = json!({"type": "string"});
    let script = offering(&json!([
        {"name": "plain", "inputSchema": {"type": "object"}},
        {"name": "nested", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {
            "total": {"type": "integer"},
            "items": {"type": "array", "items": {"type": "object", "properties": {"name": text}}},
            "by": {"type": "object", "additionalProperties": text},
            "any": {},
        }}},
    ]));
    rig.write("client.toml", "");
    let pin = ["--policy", "client.toml", "mcp", "pin", "--yes", "--all", "--id", "s", "--", "/bin/sh", "-c", &script];
    rig.run(&pin).code(0);
    let policy = std::fs::read_to_string(rig.path("client.toml")).unwrap();
    let names = |tool: &str| {
        let (_, table) = policy.split_once(&format!("[tools.mcp__s__{tool}]")).unwrap();
        let (_, names) = table.split_once("it can name: ").unwrap();
        let mut names: Vec<_> = names.lines().next().unwrap().split(", ").map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names("nested"), ["by.*", "items.name", "total"], "{policy}");
    assert_eq!(names("plain"), ["resources.mime_type", "resources.name", "resources.text", "resources.uri", "text"]);
}
