//! A script as a tool of the server: its calls go through the gate for the client that sent it.

use std::sync::Arc;

use serde_json::json;
use tool_runtime::agent::CodeMode;
use tool_runtime::call::Caller;
use tool_runtime::mcp::serve::McpServer;
use tool_runtime::store::{MemoryStore, RecordFilter};
use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};

use crate::serve::rig::{add, admitted, call, find, outcomes, piped, records, text, write};

const POLICY: &str = r#"
allowed_tools = ["people__find", "math__add", "notes__write"]
allowed_graphs = ["code", "writer"]
"#;

fn server(store: &Arc<MemoryStore>) -> McpServer {
    let code = CodeMode::new("code", "1").tools(["people__find", "math__add"]);
    let writer = CodeMode::new("writer", "1").tools(["notes__write"]).effects();
    let tools = ToolCatalog::builder().tool::<find>().tool::<add>().tool::<write>();
    let catalog = tools.dynamic(code).dynamic(writer).build().expect("a catalog");
    let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
    let runner = ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(store)).build();
    McpServer::builder(runner.expect("a runner"), admitted).name("rig", "1").build().expect("a server")
}

/// The calls of a script with effects wait under any policy.
#[test]
fn a_script_whose_calls_nobody_can_decide_on_is_not_served() {
    let build = |effects: bool, own: bool| {
        let writer = CodeMode::new("writer", "1").tools(["notes__write", "math__add"]);
        let writer = if effects { writer.effects() } else { writer.tools(["math__add"]) };
        let catalog = ToolCatalog::builder().tool::<add>().tool::<write>().dynamic(writer).build().expect("a catalog");
        let own = if own { "[approvals]\nown_calls = true" } else { "" };
        let policy = format!("allowed_tools = ['math__add', 'notes__write']\nallowed_graphs = ['writer']\n{own}");
        let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).expect("a policy")).approvals(true);
        McpServer::builder(runner.build().expect("a runner"), admitted)
    };
    let refused = build(true, false).build().expect_err("nobody decides").to_string();
    assert!(refused.contains("each effect of `graph__writer`"), "{refused}");
    assert!(build(true, true).build().is_err() && build(true, false).ask_clients(true).build().is_err());
    build(true, true).ask_clients(true).build().expect("the client decides");
    build(false, false).build().expect("nothing waits");
}

#[tokio::test]
async fn a_client_runs_a_script() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store)).await;
    let listed = client.list_tools(None).await.unwrap();
    let tool = |name: &str| serde_json::to_value(listed.tools.iter().find(|tool| tool.name == name)).unwrap();
    assert_eq!(tool("graph__code")["annotations"]["readOnlyHint"], true);
    assert_eq!(tool("graph__writer")["annotations"]["readOnlyHint"], false);
    assert_eq!(tool("graph__code")["outputSchema"]["properties"]["value"]["type"], "string");

    let script = "let n = 0; for i in 1..4 { n += math__add(#{ a: i, b: 1 }); } [n, people__find(#{ name: \"Ada\" })]";
    let result = call(&client, "graph__code", json!({ "script": script })).await.unwrap();
    let value = r#"[9,{"friends":["Bob"],"name":"Ada","town":"Graz"}]"#;
    assert_eq!(result.structured_content, Some(json!({"value": value, "printed": "", "calls": 4})));
    assert!(!text(&result).contains("71234"), "the salary is not on the allowlist");

    let records = records(&store, 5).await;
    let add = || json!(["math__add", "ok"]);
    assert_eq!(outcomes(&records), [add(), add(), add(), json!(["people__find", "ok"]), json!(["graph__code", "ok"])]);
    for record in &records {
        assert_eq!((record.principal.as_deref(), record.tenant.as_deref()), (Some("ada"), Some("acme")));
    }
    let Caller::Graph { run, name, .. } = &records[0].caller else { panic!("{:?}", records[0].caller) };
    assert_eq!((name.as_str(), run.as_str()), ("code", &*records[4].run_id));
}

/// A client reads why its script failed, with no text except the script's own. It cannot decide on waiting calls.
#[tokio::test]
async fn a_client_reads_why_a_script_did_not_end() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store)).await;
    let failed = call(&client, "graph__code", json!({"script": "1 +"})).await.unwrap();
    assert_eq!(failed.is_error, Some(true));
    assert!(text(&failed).starts_with("The script cannot be read"), "{}", text(&failed));
    let hidden = call(&client, "graph__code", json!({"script": "call_tool(\"admin__wipe\", #{})"})).await.unwrap();
    assert!(text(&hidden).contains("(unavailable), at line 1"), "{}", text(&hidden));

    let waits = call(&client, "graph__writer", json!({"script": "notes__write()"})).await.unwrap();
    assert!(waits.is_error == Some(true) && text(&waits).contains("approval_required"), "{}", text(&waits));
    assert_eq!(tests::pending_calls(&*store, &RecordFilter::default()).await.len(), 2, "an operator decides");
}
