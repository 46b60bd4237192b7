//! Tests that the program answers a client over standard input and output, and ends when the client closes them.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn it_lists_and_calls_its_tools_and_ends_with_its_client() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mcp-fixtures"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = program.stdin.take().unwrap();
    let mut from = BufReader::new(program.stdout.take().unwrap());
    let mut ask = |message: Value| {
        writeln!(to, "{message}").unwrap();
        let Some(id) = message.get("id") else { return Value::Null };
        loop {
            let mut line = String::new();
            assert_ne!(from.read_line(&mut line).unwrap(), 0, "the program ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer.get("id") == Some(id) {
                return answer["result"].clone();
            }
        }
    };
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let begun = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    assert_eq!(begun["serverInfo"]["name"], "fixtures");
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));

    let listed = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"test_simple_text") && names.contains(&"json_schema_2020_12_tool"), "{names:?}");

    let params = json!({"name": "test_simple_text", "arguments": {}});
    let called = ask(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}));
    assert_eq!(called["content"][0]["text"], "This is a simple text response for testing.");

    drop(to);
    assert!(program.wait().unwrap().success());
    let mut records = String::new();
    program.stderr.take().unwrap().read_to_string(&mut records).unwrap();
    assert_eq!(records.lines().count(), 1, "one call, one record: {records}");
}
