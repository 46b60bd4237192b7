//! Lists and calls over a pipe.
#![expect(deprecated, reason = "sampling is part of the older revisions")]

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ErrorCode, ErrorData,
    Implementation, PaginatedRequestParams, ProtocolVersion, SamplingCapability, SamplingMessage,
};
use rmcp::service::{ClientLifecycleMode, RequestContext, RunningService, ServiceError, ServiceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tool_runtime::capability::Sample;
use tool_runtime::mcp::serve::{HttpOptions, McpServer};
use tool_runtime::store::MemoryStore;
use tool_runtime::{ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::serve::http::{listening, raw};
use crate::serve::rig::{admitted, call, outcomes, piped, records, request, runner, server, text};

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

/// Suggests a title.
#[tool(name = "reports__title", effect = external_side_effect, redact = ["$"])]
async fn title(model: &dyn Sample) -> Result<String, ToolError> {
    Ok(model.sample("Suggest a title.", 20).await.unwrap_or_else(|error| format!("{error:?}")))
}

/// A client with a model, which refuses without an answer.
struct WithModel(ProtocolVersion, Option<&'static str>);

impl ClientHandler for WithModel {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.sampling = Some(SamplingCapability::default());
        ClientConfig::new(capabilities, Implementation::new("model", "1")).with_protocol_version(self.0.clone())
    }

    async fn create_message(
        &self,
        question: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        assert_eq!((question.messages.len(), question.max_tokens), (1, 20));
        let answer = self.1.ok_or_else(|| ErrorData::new(ErrorCode(-1), "the user said no", None))?;
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text(answer), "m".to_owned()))
    }
}

/// In revisions in which a server may ask during a call.
#[tokio::test]
async fn a_tool_asks_the_model_of_its_client() {
    let catalog = ToolCatalog::builder().tool::<title>().build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["reports__title"])).build().unwrap();
    let server = McpServer::builder(runner, admitted).build().unwrap();
    let pipe = || {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let server = server.clone();
        tokio::spawn(async move { server.stream(read, write).await });
        ours
    };
    let told = async |client: &RunningService<RoleClient, WithModel>| {
        let result = client.call_tool(request("reports__title", json!({}))).await.unwrap();
        text(&result).to_owned()
    };
    for (answer, expected) in [(Some("Sales of today"), "Sales of today"), (None, "Declined")] {
        let client = WithModel(ProtocolVersion::V_2025_11_25, answer).serve(pipe()).await.unwrap();
        assert_eq!(told(&client).await, expected);
    }
    let discovers = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let newest = WithModel(ProtocolVersion::V_2026_07_28, Some("never asked"));
    let client = rmcp::service::serve_client_with_lifecycle(newest, pipe(), discovers).await.unwrap();
    assert_eq!(told(&client).await, "Unsupported");
    let without = piped(&server).await;
    assert_eq!(text(&call(&without, "reports__title", json!({})).await.unwrap()), "Unsupported");
}

/// The gate's answer about arguments does not depend on the way in which they arrived.
#[tokio::test]
async fn arguments_are_read_as_they_were_written() {
    let store = Arc::<MemoryStore>::default();
    let server = server(&store);
    let address = listening(&server, &HttpOptions::new()).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let head = format!(
        "Host: {address}\r\nx-user: ada\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: add\r\n"
    );
    for (at, arguments) in [
        r#"{"a":1,"a":2,"b":3}"#,
        r#"{"a":1,"b":2,"\u0061":3}"#,
        r#"{"a":1,"b":18446744073709551617}"#,
        r#"{"a":1,"b":"\ud800"}"#,
        r#"{ "a" : 2 , "b" : 3 }"#,
        "{}",
    ]
    .into_iter()
    .enumerate()
    {
        // Each call has a separate run, because a run tells its model how often it was wrong.
        let run = runner(&store).run(tool_runtime::RunOptions::new().principal("ada").tenant("acme"));
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let piped = server.clone();
        tokio::spawn(async move { piped.stream(read, write).await });
        let mut pipe = tokio::io::BufReader::new(ours);
        let here = run.exec(ToolCall::text(format!("c{at}"), "math__add", arguments)).await;
        let expected = if here.is_ok() { "5".to_owned() } else { here.to_model() };
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{at},"method":"tools/call","params":{{"_meta":{meta},"name":"add","arguments":{arguments}}}}}"#
        );
        pipe.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        pipe.read_line(&mut line).await.unwrap();
        let piped: Value = serde_json::from_str(&line).unwrap();
        let (status, response) = raw(address, &head, &message).await;
        assert_eq!(status, 200, "{response}");
        let posted = response.lines().filter_map(|line| line.strip_prefix("data: ").or(Some(line)));
        let posted = posted.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let posted = posted.into_iter().find(|message| message["id"] == at).expect("an answer");
        for answer in [piped, posted] {
            assert_eq!(answer["result"]["content"][0]["text"], expected, "{arguments}");
            assert_eq!(answer["result"]["isError"] == true, !here.is_ok(), "{arguments}: {answer}");
        }
    }
    let records = records(&store, 18).await;
    for three in [[0, 1, 2], [3, 4, 5]].map(|three| three.map(|at| &records[at])) {
        assert!(three.iter().all(|record| record.outcome.code() == "invalid_json"), "{three:?}");
    }
}
