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
