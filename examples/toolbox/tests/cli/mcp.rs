//! `mcp serve`: standard output belongs to the protocol, and HTTP to this machine.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::rig::Rig;

#[test]
fn a_client_at_a_pipe_calls_through_the_gate() {
    let rig = Rig::new();
    let mut server = rig.start(&["-v", "mcp", "serve"]);
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

#[test]
fn an_address_that_cannot_be_used_is_refused() {
    let rig = Rig::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = rig.run(&["mcp", "serve", "--http", &address]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("in use by another process"), "{}", ended.stderr);
    let ended = rig.run(&["mcp", "serve", "--http", "0.0.0.0:0"]);
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

/// The tool that is brought in, and its name here.
const CLOCK: &str = "core__get_current_time";
const BROUGHT_IN: &str = "mcp__s__core__get_current_time";

/// The toolbox as a server of the toolbox, under a policy of its own.
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

    /// Runs a command about the server.
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

    /// How a call of the tool ends.
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

    // The server says now that its tool writes something.
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
    assert_eq!(chain.about(&["pin", "--yes"]).code, 0, "there is nothing to pin");
}
