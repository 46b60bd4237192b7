//! Tests code mode: an MCP client calls one tool that runs a script, which calls `read_only` tools.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::rig::Rig;

#[test]
fn a_client_runs_a_script_over_tools_that_only_read() {
    let rig = Rig::new();
    rig.write("code.toml", include_str!("../../code.toml"));
    let mut server = rig.start(&["--policy", "code.toml", "mcp", "serve"]);
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |id: u64, method: &str, params: Value| -> Value {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).unwrap();
        let mut answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        answer["result"].take()
    };
    let client = json!({"name": "test", "version": "1"});
    ask(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}));
    let listed = ask(2, "tools/list", json!({}));
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"graph__code") && !names.contains(&"mail__send_email"), "{names:?}");
    let mut run =
        |id: u64, script: &str| ask(id, "tools/call", json!({"name": "graph__code", "arguments": {"script": script}}));
    let script = "let calls = 0; for at in 0..3 { docs__search(#{ query: `word ${at}` }); calls += 1; } calls";
    let counted = run(3, script);
    assert_eq!(counted["structuredContent"], json!({"value": "3", "printed": "", "calls": 3}), "{counted}");
    // A script cannot call a tool that the policy does not name.
    let script = r#"let told = []; for tool in ["notes__add_note", "nothing__there"] {
        try { call_tool(tool, #{ text: "x" }); told.push("ran"); } catch (failure) { told.push(failure.errorCode); }
    } told"#;
    let denied = run(4, script);
    assert_eq!(denied["structuredContent"]["value"], r#"["unavailable","unavailable"]"#, "{denied}");
    drop(input);
    server.wait().unwrap();
    let records = rig.run(&["--policy", "code.toml", "--json", "call", "notes__list_notes", "{}"]).code(0);
    assert!(!records.stdout.contains("\"x\""), "{records:?}");
}

#[test]
fn an_explanation_names_the_rule_that_allows_a_graph() {
    let rig = Rig::new();
    rig.write("roles.toml", "[roles.admin]\nallowed_graphs = ['code']\n");
    let explain = ["--policy", "roles.toml", "policy", "explain", "graph__code"];
    let allowed = rig.run(&[&explain[..], &["--role", "admin", "--arguments", r#"{"script":"1"}"#]].concat());
    assert!(allowed.stdout.contains("roles.admin.allowed_graphs: `roles.admin` may use it"), "{allowed:?}");
    let denied = rig.run(&explain).code(3);
    assert!(denied.stdout.contains("names it under `allowed_graphs`"), "{denied:?}");
    let nested = rig.run(&[&explain[..], &["--role", "admin", "--caller", "graph:other"]].concat()).code(3);
    assert!(nested.stdout.contains("graph.depth: a graph may not call another graph"), "{nested:?}");
}
