//! Each adapter with the real crate: definitions are theirs, every call goes through the gate, results are what they
//! send on.

use serde_json::{Value, json};
use tool_runtime::call::CallId;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{Run, RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Adds two numbers.
#[tool(name = "math__add", effect = read_only, redact = ["$"])]
fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::safe("The sum is too large."))
}

/// Deletes a note.
#[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
fn delete(
    /// The number of the note.
    note: u32,
) -> Result<u32, ToolError> {
    Ok(note)
}

fn run() -> (Run, MemoryStore) {
    let store = MemoryStore::new();
    let catalog = ToolCatalog::builder().tool::<add>().tool::<delete>().build().unwrap();
    let policy = ToolPolicy::from_toml(
        r#"
        allowed_tools = ["math__add", "notes__delete"]
        require_approval_for_tools = ["notes__delete"]
        "#,
    );
    let runner = ToolRunner::builder(catalog, policy.unwrap()).store(store.clone()).approvals(true).build().unwrap();
    (runner.run(RunOptions::new().principal("ada")), store)
}

async fn outcomes(store: &MemoryStore) -> Vec<&'static str> {
    let records = store.calls(&RecordFilter::default()).await.unwrap();
    records.iter().map(|record| record.outcome.code()).collect()
}

/// Files beside an output: none is missing without a word.
mod files {
    use async_openai::types::chat::ChatCompletionRequestMessage;
    use async_openai::types::responses::InputItem;
    use genai::chat::ToolResponse;
    use tool_runtime::media::Media;
    use tool_runtime::{
        RunOptions, ToolCall, ToolCatalog, ToolError, ToolExecResult, ToolPolicy, ToolRunner, WithMedia, tool,
    };

    use super::{Value, json};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const SAID: &str = "1\n\n[The tool also returned a file (image/png, 16 bytes) that cannot be passed on to this \
        model.]\n\nlog.txt:\n\nline 1";

    /// Shows a page.
    #[tool(name = "pages__show", effect = read_only, redact = ["$", "$media"])]
    fn show() -> Result<WithMedia<u8>, ToolError> {
        let log = Media::bytes("text/plain", b"line 1")?.with_name("log.txt");
        Ok(WithMedia::new(1).media(Media::bytes("image/png", PNG)?).media(log))
    }

    fn run() -> tool_runtime::Run {
        let catalog = ToolCatalog::builder().tool::<show>().build().unwrap();
        ToolRunner::builder(catalog, ToolPolicy::allow(["pages__show"])).build().unwrap().run(RunOptions::new())
    }

    async fn shown() -> ToolExecResult {
        run().exec(ToolCall::text("c1", "pages__show", "{}")).await
    }

    #[tokio::test]
    async fn clients_with_text_only_get_text() {
        let result = shown().await;
        assert_eq!(ToolResponse::from(&result).content, SAID);
        let chat = serde_json::to_value(ChatCompletionRequestMessage::from(&result)).unwrap();
        assert_eq!(chat["content"], SAID);
        let tool = tool_runtime::adapters::rig::tools(&run()).remove(0);
        let output = tool.execute(json!({})).await.unwrap();
        assert_eq!(output.as_text(), Some(SAID));
    }

    #[tokio::test]
    async fn responses_get_the_files() {
        let told: Value = serde_json::to_value(InputItem::from(&shown().await)).unwrap();
        assert_eq!(told["call_id"], "c1");
        assert_eq!(told["output"][0], json!({ "type": "input_text", "text": "1" }));
        let image = told["output"][1]["image_url"].as_str().unwrap();
        assert!(image.starts_with("data:image/png;base64,iVBORw0KGgo"), "{told}");
        assert_eq!((&told["output"][2]["type"], &told["output"][2]["filename"]), (&json!("input_file"), &json!("log.txt")));
    }
}

mod rig {
    use rig_agent::AgentBuilder;
    use rig_core::test_utils::{MockCompletionModel, MockTurn};
    use tool_runtime::adapters::rig;

    use super::{json, outcomes, run};

    #[tokio::test]
    async fn an_agent_of_rig_calls_through_the_gate() {
        let (run, store) = run();
        let call = |id: &str, name: &str, arguments| MockTurn::tool_call(id, name, arguments);
        let model = MockCompletionModel::from_turns([
            call("c1", "math__add", json!({ "a": 2, "b": 3 })),
            call("c2", "math__add", json!({ "a": "two", "b": 3 })),
            call("c3", "math__add", json!({ "a": i64::MAX, "b": 1 })),
            call("c4", "notes__delete", json!({ "note": 7 })),
            MockTurn::text("Done."),
        ]);
        let agent = AgentBuilder::new(model.clone()).dynamic_tools(rig::tools(&run)).default_max_turns(8).build();
        let answer = agent.prompt("Try.").await.unwrap();
        assert_eq!(answer.output(), "Done.");

        let requests = model.requests();
        let offered: Vec<_> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(offered, ["math__add", "notes__delete"]);
        assert_eq!(requests[0].tools[0].parameters["required"], json!(["a", "b"]));
        let told = format!("{:?}", requests.last().unwrap());
        for words in ["validation_error", "The sum is too large.", "approval_required"] {
            assert!(told.contains(words), "{words}");
        }
        // The call that waits has no closed record yet.
        assert_eq!(outcomes(&store).await, ["ok", "validation_error", "execution_error"]);
    }
}

mod genai {
    use genai::chat::{ChatResponse, ToolResponse};
    use tool_runtime::adapters::genai::tools;
    use tool_runtime::wire::{CallStatus, Decoded};

    use super::{Value, json, outcomes, run};

    fn response(stop: Value) -> ChatResponse {
        let call = |id: &str, arguments: Value| json!({ "ToolCall": { "call_id": id, "fn_name": "math__add", "fn_arguments": arguments } });
        let model = json!({ "adapter_kind": "OpenAI", "model_name": "m" });
        let text = json!({
            "content": [{ "Text": "Let me see." }, call("c1", json!({ "a": 2, "b": 3 })), call("c2", json!("two"))],
            "model_iden": model,
            "provider_model_iden": model,
            "stop_reason": stop,
            "usage": {},
        });
        serde_json::from_str(&text.to_string()).unwrap()
    }

    #[tokio::test]
    async fn calls_of_genai_go_through_the_gate() {
        let (run, store) = run();
        let offered = tools(&run);
        assert_eq!(offered[0].name.as_str(), "math__add");
        assert_eq!(offered[0].schema.as_ref().unwrap()["required"], json!(["a", "b"]));

        let mut told = Vec::new();
        let decoded = Decoded::from(&response(json!({ "ToolCall": "tool_calls" })));
        assert_eq!((decoded.text.as_str(), decoded.calls[1].status), ("Let me see.", CallStatus::ArgumentsNotObject));
        for decoded in decoded.calls {
            let response = ToolResponse::from(&run.exec(decoded.call).await);
            told.push((response.call_id, response.content));
        }
        assert_eq!(told[0], ("c1".to_owned(), "5".to_owned()));
        assert!(told[1].1.contains("validation_error") || told[1].1.contains("invalid_json"), "{}", told[1].1);
        assert_eq!(outcomes(&store).await[0], "ok");
    }

    #[tokio::test]
    async fn a_response_that_was_cut_runs_nothing() {
        for stop in [json!({ "MaxTokens": "length" }), json!({ "ContentFilter": "SAFETY" }), Value::Null] {
            let (run, store) = run();
            for decoded in Decoded::from(&response(stop.clone())).calls {
                assert!(!run.exec(decoded.call).await.is_ok());
            }
            assert_eq!(outcomes(&store).await, ["incomplete_call", "incomplete_call"], "{stop}");
        }
    }
}

mod async_openai {
    use async_openai::types::chat::{ChatCompletionRequestMessage, CreateChatCompletionResponse};
    use async_openai::types::responses::{InputItem, Item, Response};
    use tool_runtime::adapters::async_openai::{chat_tools, response_tools};
    use tool_runtime::wire::Decoded;

    use super::{CallId, Value, json, outcomes, run};

    fn response(finish: &str) -> CreateChatCompletionResponse {
        let function = json!({ "name": "math__add", "arguments": r#"{"a":2,"b":3}"# });
        let call = json!({ "id": "c1", "type": "function", "function": function });
        serde_json::from_value(json!({
            "id": "r1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{ "index": 0, "finish_reason": finish,
                "message": { "role": "assistant", "content": "Let me see.", "tool_calls": [call] } }],
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn calls_of_chat_completions_go_through_the_gate() {
        let (run, store) = run();
        let offered = serde_json::to_value(chat_tools(&run).unwrap()).unwrap();
        assert_eq!(offered[0]["function"]["name"], "math__add");
        assert_eq!(offered[0]["function"]["parameters"]["required"], json!(["a", "b"]));

        let decoded = Decoded::from(&response("tool_calls"));
        assert_eq!(decoded.text, "Let me see.");
        let result = run.exec(decoded.calls[0].call.clone()).await;
        let told = ChatCompletionRequestMessage::from(&result);
        let told: Value = serde_json::to_value(told).unwrap();
        assert_eq!(told, json!({ "role": "tool", "tool_call_id": "c1", "content": "5" }));

        let cut = Decoded::from(&response("length"));
        assert!(!cut.calls[0].is_executable());
        assert_eq!(outcomes(&store).await, ["ok"]);
    }

    #[tokio::test]
    async fn calls_of_responses_go_through_the_gate() {
        let (run, store) = run();
        let offered = serde_json::to_value(response_tools(&run).unwrap()).unwrap();
        assert_eq!((&offered[0]["type"], &offered[0]["name"]), (&json!("function"), &json!("math__add")));

        let call = json!({ "type": "function_call", "id": "f1", "call_id": "c1", "name": "math__add",
            "arguments": r#"{"a":2,"b":3}"#, "status": "completed" });
        let response: Response = serde_json::from_value(json!({
            "id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [call],
        }))
        .unwrap();
        let decoded = Decoded::from(&response);
        assert_eq!(decoded.calls[0].call.id, CallId::new("c1"));
        let told = InputItem::from(&run.exec(decoded.calls[0].call.clone()).await);
        assert!(matches!(&told, InputItem::Item(Item::FunctionCallOutput(_))));
        let told = serde_json::to_value(told).unwrap();
        assert_eq!(told, json!({ "type": "function_call_output", "call_id": "c1", "output": "5" }));
        assert_eq!(outcomes(&store).await, ["ok"]);
    }
}
