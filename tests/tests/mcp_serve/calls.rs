//! Lists and calls over a pipe.

use std::sync::Arc;

use rmcp::model::{ErrorCode, PaginatedRequestParams};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tool_runtime::store::MemoryStore;

use crate::rig::{call, outcomes, piped, records, server, text};

#[tokio::test]
async fn the_list_is_what_the_run_may_use() {
    let client = piped(&server(&Arc::default())).await;
    let listed = client.list_tools(None).await.unwrap();
    assert_eq!(listed.next_cursor, None);
    let names: Vec<_> = listed.tools.iter().map(|tool| &*tool.name).collect();
    assert!(names.is_sorted() && names.contains(&"add") && names.contains(&"letters__send"), "{names:?}");
    assert!(!names.contains(&"math__add") && !names.contains(&"admin__wipe"), "{names:?}");
    let tool = |name: &str| serde_json::to_value(listed.tools.iter().find(|tool| tool.name == name)).unwrap();

    let find = tool("people__find");
    assert_eq!(find["title"], "Find a person");
    let hints = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    assert_eq!(find["annotations"], hints);
    assert_eq!(find["inputSchema"]["required"], json!(["name"]));
    let shown: Vec<_> = find["outputSchema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(shown, ["friends", "name", "town"], "the salary is not on the allowlist");

    assert_eq!(tool("add")["outputSchema"]["properties"]["result"]["type"], "integer", "a number is wrapped");
    let write = tool("notes__write");
    let hints = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false});
    assert_eq!(write["annotations"], hints);
    assert_eq!(write["inputSchema"]["type"], "object");
    assert_eq!(write["inputSchema"]["additionalProperties"], false);
    assert_eq!(tool("letters__send")["annotations"]["openWorldHint"], true);

    let bad = client.list_tools(Some(PaginatedRequestParams::default().with_cursor(Some(String::new())))).await;
    assert!(matches!(bad, Err(ServiceError::McpError(error)) if error.code == ErrorCode::INVALID_PARAMS));
}

#[tokio::test]
async fn a_call_goes_through_the_gate() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store)).await;
    let result = call(&client, "people__find", json!({"name": "Ada"})).await.unwrap();
    let shown = json!({"friends": ["Bob"], "name": "Ada", "town": "Graz"});
    assert_eq!(result.structured_content, Some(shown.clone()));
    assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), shown);
    assert_ne!(result.is_error, Some(true));
    let sum = call(&client, "add", json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!((sum.structured_content.clone(), text(&sum)), (Some(json!({"result": 5})), "5"));

    let records = records(&store, 2).await;
    assert_eq!(outcomes(&records), [json!(["people__find", "ok"]), json!(["math__add", "ok"])]);
    assert_eq!(records[0].principal.as_deref(), Some("ada"));
    assert_eq!(records[0].tenant.as_deref(), Some("acme"));
    assert_eq!(records[0].run_id, records[1].run_id, "a connection is one run");
}

#[tokio::test]
async fn what_may_not_be_seen_reads_like_what_does_not_exist() {
    let store = Arc::<MemoryStore>::default();
    let client = piped(&server(&store)).await;
    // There is no such tool; the policy denies it; it has another name here.
    for name in ["nothing__there", "admin__wipe", "math__add"] {
        let error = call(&client, name, json!({})).await.unwrap_err();
        let ServiceError::McpError(error) = error else { panic!("{error}") };
        assert_eq!((error.code, &*error.message), (ErrorCode::INVALID_PARAMS, &*format!("Unknown tool: {name}")));
        assert_eq!(error.data, None);
    }
    let expected = [
        json!(["nothing__there", "unavailable"]),
        json!(["admin__wipe", "policy_denied"]),
        json!(["math__add", "unavailable"]),
    ];
    assert_eq!(outcomes(&records(&store, 3).await), expected);
}
