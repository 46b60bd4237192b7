//! Servers as processes: how they start, end and come back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tests::hostile::CANARY;
use tool_runtime::mcp::source::{RemoteServer, ToolSource};
use tool_runtime::{Outcome, Run, RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

use crate::source::{call, connect, echoes, noted, run_of, server, tool};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_start_is_down_and_costs_no_other() {
    for (scenario, note) in [
        ("exit-at-once", "the connection ended"),
        ("garbage", "something to its standard output that is not MCP"),
        ("garbage-answer", "cannot be read"),
        ("bad-version", "share no protocol revision"),
        ("long-line", "a message over the size limit"),
        ("never-initialize", "did not answer in time"),
        ("hang-list", "could not be listed"),
    ] {
        let servers = noted(note, |limit| {
            let bad = server("bad", scenario);
            // These two never answer; all others do, after a while.
            let hangs = matches!(scenario, "never-initialize" | "hang-list");
            vec![if hangs { bad.connect_timeout(limit) } else { bad }, server("s", "well-behaved")]
        });
        let servers = servers.await;
        let notes = servers.notes();
        let found = notes.get("bad").map(String::as_str).unwrap_or_default();
        assert!(found.starts_with("down: ") && found.contains(note), "{scenario}: {found}");
        assert!(!notes.contains_key("s"), "{scenario}");
        echoes(&servers).await;
        servers.shutdown().await;
    }
    for (script, note) in
        [("echo garbage", "is not MCP"), ("echo garbage; sleep 100", "is not MCP"), ("true", "the connection ended")]
    {
        let command = || RemoteServer::command("bad", "/bin/sh").args(["-c", script]);
        noted(note, |limit| vec![command().connect_timeout(limit)]).await;
    }
    let missing = RemoteServer::command("bad", "/no/such/program");
    let servers = ToolSource::connect([missing, server("s", "well-behaved")]).await.unwrap();
    assert!(servers.notes()["bad"].contains("cannot be started"));
    echoes(&servers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_and_requests_of_a_server_are_nothing() {
    let scenarios = ["stderr-flood", "asks", "changed-at-once", "stateless", "stateless-flood"];
    // Two that answer a handshake with the revision that has none: one can be discovered, and one cannot.
    for scenario in scenarios.into_iter().chain(["stateless-says", "says-stateless"]) {
        let servers = connect(scenario).await;
        assert!(servers.notes().is_empty(), "{scenario}: {:?}", servers.notes());
        echoes(&servers).await;
        servers.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_gets_the_environment_that_it_is_given() {
    // A variable that cargo sets for a test is the canary: no child may have it.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let servers = ToolSource::connect([server("s", "well-behaved").env("GIVEN", "1")]).await.unwrap();
    let result = call(&run_of(&servers, &["mcp__s__env"], ""), "mcp__s__env", "{}").await;
    assert_eq!(result.to_model(), r#"{"text":"GIVEN=1"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_tell_servers_apart() {
    let servers = ToolSource::connect([server("one", "well-behaved"), server("two", "well-behaved")]).await.unwrap();
    let names: Vec<_> = servers.tools().iter().filter_map(|tool| tool.name().map(str::to_owned)).collect();
    assert!(names.contains(&"mcp__one__echo".to_owned()) && names.contains(&"mcp__two__echo".to_owned()));
    for (one, two) in [("a", "a"), ("a-b", "a_b")] {
        let error = ToolSource::connect([server(one, "x"), server(two, "x")]).await.unwrap_err();
        assert_eq!(error.code(), "duplicate_server");
        assert!(error.to_string().contains(&format!("`{two}`")), "{error}");
    }
    for id in ["", "A", "a__b", "-a", "a-", "a b", "a.b", "ä", "a-name-that-is-too-long"] {
        let error = ToolSource::connect([server(id, "x")]).await.unwrap_err();
        assert_eq!(error.code(), "server_id");
        assert!(error.to_string().contains(&format!("`{id}`")), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_died_comes_back_for_the_next_call() {
    let servers = connect("well-behaved").await;
    for _ in 0..3 {
        // A separate store: the second call would wait, because the outcome of the first is unknown.
        let run = run_of(&servers, &["mcp__s__die", "mcp__s__echo"], "");
        assert_eq!(call(&run, "mcp__s__die", "{}").await.outcome(), Outcome::OutcomeUnknown);
        assert_eq!(call(&run, "mcp__s__echo", r#"{"text":"x"}"#).await.outcome(), Outcome::Ok);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_down_fails_its_calls_before_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    std::fs::copy(env!("CARGO_BIN_EXE_hostile-mcp"), &program).unwrap();
    let file = RemoteServer::command("s", program.to_str().unwrap()).args(["well-behaved"]);
    let servers = ToolSource::connect([file]).await.unwrap();
    let run = run_of(&servers, &["mcp__s__die", "mcp__s__echo"], "");
    std::fs::remove_file(&program).unwrap();
    assert_eq!(call(&run, "mcp__s__die", "{}").await.outcome(), Outcome::OutcomeUnknown);
    for _ in 0..2 {
        let result = call(&run, "mcp__s__echo", r#"{"text":"x"}"#).await;
        assert_eq!((result.outcome(), result.executed()), (Outcome::ConnectionFailed, false));
        // The tool uses no account, so the message does not name one.
        assert!(result.to_model().contains("The server of this tool does not answer"), "{}", result.to_model());
    }
    assert!(servers.notes()["s"].starts_with("down: "));
}

/// Lets the server start a process. Returns the folder of the process in `/proc`.
#[cfg(target_os = "linux")]
async fn spawned(run: &Run) -> PathBuf {
    let result = call(run, "mcp__s__spawn", "{}").await.to_model();
    let child: String = result.chars().filter(char::is_ascii_digit).collect();
    let process = Path::new("/proc").join(&child);
    assert!(!child.is_empty() && process.exists(), "{result}");
    process
}

/// Waits for the end of a process. It may wait for its new parent to look at it.
#[cfg(target_os = "linux")]
async fn ended(process: &Path) {
    let is_running = || {
        let state = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        !(state.is_empty() || state.contains(") Z "))
    };
    while is_running() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_ends_with_all_that_it_started() {
    for in_order in [true, false] {
        let servers = connect("well-behaved").await;
        let run = run_of(&servers, &["mcp__s__spawn"], "");
        let process = spawned(&run).await;
        drop(run);
        if in_order {
            servers.shutdown().await;
        } else {
            drop(servers);
        }
        ended(&process).await;
    }
}

/// No next call and no shutdown is needed to end a server that writes something else than the protocol.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_leaves_the_protocol_is_ended_at_once() {
    let servers = connect("well-behaved").await;
    let run = run_of(&servers, &["mcp__s__spawn", "mcp__s__babble"], "");
    let process = spawned(&run).await;
    assert_eq!(call(&run, "mcp__s__babble", "{}").await.outcome(), Outcome::OutcomeUnknown);
    ended(&process).await;
    drop(servers);
}

/// The standard error of a server is in its note, and in no text for a model.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_words_of_a_server_are_for_operators() {
    let script = "echo \"no key $KEY\" >&2; exit 1";
    let server = || RemoteServer::command("s", "/bin/sh").args(["-c", script]).env("KEY", CANARY);
    let servers = ToolSource::connect([server()]).await.unwrap();
    // The process and its output have ended.
    while !servers.notes()["s"].ends_with("; the end of its standard error:\n  no key [KEY]") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let catalog = ToolCatalog::builder().source(&servers).build().unwrap();
    let policy = ToolPolicy::allow(["mcp__s__echo"]);
    let why = catalog.unready(&policy, "mcp__s__echo");
    assert!(
        why.as_ref().is_some_and(
            |why| why.code() == "server_down" && why.message() == "its server is down: the connection ended"
        ),
        "{why:?}"
    );
    let run = ToolRunner::builder(catalog, policy).build().unwrap().run(RunOptions::new());
    let result = call(&run, "mcp__s__echo", "{}").await;
    assert!(!format!("{result:?}{}", result.to_model()).contains("key"), "{result:?}");

    // The message of a refusal is shown in the same way.
    let refused = ToolSource::connect([crate::source::server("s", "refuses")]).await.unwrap();
    let note = &refused.notes()["s"];
    assert!(note.contains("with the code -32603: no such project"), "{note}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_server_is_in_what_is_printed() {
    let servers = ToolSource::connect([server("s", "well-behaved").env("TOKEN", CANARY).args([CANARY])]).await.unwrap();
    let printed = format!("{servers:?} {:?} {:?}", tool(&servers, "echo"), server("s", CANARY).env("T", CANARY));
    assert!(!printed.contains(CANARY) && !printed.contains("Says"), "{printed}");
}
