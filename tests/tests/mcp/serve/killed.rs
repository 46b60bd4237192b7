//! The process that serves is killed while a call with effects runs, and another one begins over the same store.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tool_runtime::agent::Input;
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{Chain, RecordFilter, Store as _};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::serve::http::raw;

/// A server as a process.
struct Served {
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// `None` over standard input and output.
    address: Option<SocketAddr>,
    next: u64,
    /// Whether its client declares tasks.
    tasks: bool,
}

impl Served {
    async fn start(folder: &Path, way: &str) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_mcp-served"))
            .args([folder.join("store.db"), folder.join("effects")])
            .args(way.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut lines = BufReader::new(stdout).lines();
        let address = match way {
            "stdio" | "stdio asks" => None,
            _ => Some(lines.next_line().await.unwrap().unwrap().parse().unwrap()),
        };
        Self { process, stdin, lines, address, next: 0, tasks: true }
    }

    /// Sends a request and returns its answer; `None` if the process is killed first.
    async fn ask(&mut self, method: &str, name: &str, params: Value) -> Option<Value> {
        self.next += 1;
        if let Some(address) = self.address {
            return post(address, (self.next, self.tasks), method, name, params).await;
        }
        self.stdin
            .write_all(format!("{}\n", message((self.next, self.tasks), method, params)).as_bytes())
            .await
            .ok()?;
        loop {
            let answer: Value = serde_json::from_str(&self.lines.next_line().await.ok()??).unwrap();
            if answer["id"] == self.next {
                return Some(answer);
            }
        }
    }

    async fn call(&mut self, tool: &str) -> Option<Value> {
        self.ask("tools/call", tool, json!({"name": tool, "arguments": {}})).await
    }

    async fn task(&mut self, id: &str) -> Value {
        self.ask("tasks/get", id, json!({"taskId": id})).await.expect("an answer")["result"].take()
    }
}

/// A request of the revision without a handshake.
fn message((id, tasks): (u64, bool), method: &str, mut params: Value) -> String {
    let extensions = if tasks { json!({"io.modelcontextprotocol/tasks": {}}) } else { json!({}) };
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions}});
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

async fn post(address: SocketAddr, id: (u64, bool), method: &str, name: &str, params: Value) -> Option<Value> {
    let head =
        format!("Host: {address}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\nmcp-name: {name}\r\n");
    let (_, response) = raw(address, &head, &message(id, method, params)).await;
    let lines = response.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(|answer| answer["id"] == id.0)
}

fn effects(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn survives(way: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut served = Served::start(folder, way).await;
    let task = served.call("killed__send").await.expect("a task")["result"].take();
    assert_eq!(task["resultType"], "task", "{task}");
    let task = task["taskId"].as_str().unwrap().to_owned();
    // It is killed once the effect has happened, with the client waiting.
    let begun = async {
        while effects(folder).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let arguments = json!({"name": "killed__write", "arguments": {}});
    if let Some(address) = served.address {
        // Without its client the call would end by itself.
        let client = tokio::spawn(post(address, (99, true), "tools/call", "killed__write", arguments));
        begun.await;
        served.process.kill().await.unwrap();
        assert_eq!(client.await.unwrap(), None, "nobody answered");
    } else {
        tokio::select! {
            answer = served.ask("tools/call", "killed__write", arguments) => panic!("it ended: {answer:?}"),
            () = begun => {}
        }
        served.process.kill().await.unwrap();
    }

    let mut served = Served::start(folder, way).await;
    assert_eq!(served.task(&task).await["status"], "input_required", "it is found again");
    let store = SqlStore::sqlite(folder.join("store.db").to_str().unwrap(), SqlOptions::new()).await.unwrap();
    let recorded = async || {
        let records = store.calls(&RecordFilter::default()).await.unwrap();
        records.into_iter().map(|record| (record.name.to_string(), record.outcome.code())).collect::<Vec<_>>()
    };
    let unknown = ("killed__write".to_owned(), "outcome_unknown");
    while recorded().await != [unknown.clone()] {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(effects(folder), ["write"]);

    // The task is decided by another process, killed, and asked for again: it ran once.
    let pending = tests::pending_calls(&store, &RecordFilter::default()).await.remove(0);
    let approved =
        Input::new().decide(&pending.question(), ApprovalDecision::Approve, &Decider::new("grace").tenant("acme"));
    let queue = tests::queue(Arc::new(
        SqlStore::sqlite(folder.join("store.db").to_str().unwrap(), SqlOptions::new()).await.unwrap(),
    ));
    queue.post(&pending.run_id, Some("acme"), &approved).await.unwrap();
    while served.task(&task).await["status"] != "completed" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    served.process.kill().await.unwrap();
    let mut served = Served::start(folder, way).await;
    let again = served.task(&task).await;
    assert!(again["status"] == "completed" || again.is_null(), "{again}");
    assert_eq!(effects(folder), ["write", "send"]);
    assert_eq!(recorded().await, [unknown, ("killed__send".to_owned(), "ok")]);
    assert_eq!(Chain::verify(&store.records(&RecordFilter::default()).await.unwrap()), Ok(()));
    served.process.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn over_standard_input_and_output() {
    survives("stdio").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http() {
    survives("http").await;
}

/// The request of a client that does not support tasks is held when the server is killed.
async fn is_found_again(way: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut served = Served::start(folder, way).await;
    served.tasks = false;
    let open = async || {
        Arc::new(SqlStore::sqlite(folder.join("store.db").to_str().unwrap(), SqlOptions::new()).await.unwrap())
    };
    let store = open().await;
    let pending = async || tests::pending_calls(&*store, &RecordFilter::default()).await;
    let begun = async {
        while pending().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let arguments = json!({"name": "killed__send", "arguments": {}});
    if let Some(address) = served.address {
        let client = tokio::spawn(post(address, (99, false), "tools/call", "killed__send", arguments));
        begun.await;
        served.process.kill().await.unwrap();
        assert_eq!(client.await.unwrap(), None, "it was held");
    } else {
        tokio::select! {
            answer = served.ask("tools/call", "killed__send", arguments) => panic!("it was not held: {answer:?}"),
            () = begun => {}
        }
        served.process.kill().await.unwrap();
    }
    let before = pending().await.remove(0);
    let mut served = Served::start(folder, way).await;
    served.tasks = false;
    let approved =
        Input::new().decide(&before.question(), ApprovalDecision::Approve, &Decider::new("grace").tenant("acme"));
    let queue = tests::queue(open().await);
    queue.post(&before.run_id, Some("acme"), &approved).await.unwrap();
    assert!(queue.post(&before.run_id, Some("acme"), &approved).await.is_err(), "decided once");
    assert_eq!(effects(folder), Vec::<String>::new(), "nobody waits for it");
    let answer = served.call("killed__send").await.expect("an answer");
    assert_eq!(answer["result"]["content"][0]["text"], "true", "{answer}");
    assert_eq!(effects(folder), ["send"]);
    assert!(pending().await.is_empty(), "the same call was the same");
    let records = store.calls(&RecordFilter::default()).await.unwrap();
    assert_eq!(records.iter().map(|record| &record.tool_call_id).collect::<Vec<_>>(), [&before.call_id]);
    served.process.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_held_over_standard_input_and_output() {
    is_found_again("stdio").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_held_over_http() {
    is_found_again("http").await;
}

/// The server that takes a call over lets the tool reconcile or repeat it. That server may have another policy.
async fn is_found_out(tool: &str, effect: &[&str], outcome: &str) {
    for way in ["stdio", "stdio asks"] {
        is_found_out_by((way, None), tool, effect, outcome).await;
    }
}

/// `ended_at`: the time at which its lease ended, as if no server had begun since.
async fn is_found_out_by((way, ended_at): (&str, Option<&str>), tool: &str, effect: &[&str], outcome: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut served = Served::start(folder, "stdio").await;
    let begun = async {
        while effects(folder).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        answer = served.ask("tools/call", tool, json!({"name": tool, "arguments": {}})) => panic!("it ended: {answer:?}"),
        () = begun => {}
    }
    served.process.kill().await.unwrap();
    if let Some(ended_at) = ended_at {
        let file = rusqlite::Connection::open(folder.join("store.db")).unwrap();
        let ended = "UPDATE tool_runtime_documents SET due = 0, body = json_set(body, (SELECT fullkey FROM \
                     json_tree(body) WHERE key = 'until'), strftime('%Y-%m-%dT%H:%M:%SZ', 'now', ?1)) \
                     WHERE space = 'call'";
        assert_eq!(file.execute(ended, [ended_at]).unwrap(), 1);
    }

    // The server looks for such calls once it has had a request.
    let mut served = Served::start(folder, way).await;
    served.ask("tools/list", "", json!({})).await.expect("an answer");
    let store = SqlStore::sqlite(folder.join("store.db").to_str().unwrap(), SqlOptions::new()).await.unwrap();
    let record = loop {
        if let Some(record) = store.calls(&RecordFilter::default()).await.unwrap().pop() {
            break record;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!((&*record.name, record.outcome.code()), (tool, outcome), "{way}");
    assert_eq!(effects(folder), effect);
    served.process.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_can_find_its_effect_is_asked() {
    is_found_out("killed__keyed", &["keyed"], "ok").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_may_run_again_does() {
    is_found_out("killed__again", &["again", "again"], "ok").await;
}

/// A call is left open for a week. If no server began in that time, the next one asks the tool before it closes the
/// call.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_asked_first_after_more_than_a_week() {
    for (tool, effect) in [("killed__keyed", &["keyed"] as &[_]), ("killed__again", &["again", "again"])] {
        is_found_out_by(("stdio", Some("-8 days")), tool, effect, "ok").await;
    }
}

/// A `reconcile` that hangs has the time of the lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_cannot_find_its_effect_leaves_it_unknown() {
    for (tool, effect) in [("killed__stuck", "stuck"), ("killed__broken", "broken")] {
        is_found_out(tool, &[effect], "outcome_unknown").await;
    }
}
