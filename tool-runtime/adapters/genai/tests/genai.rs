//! Tests that every call in a response of genai goes through the gate, and that genai sends the results.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

use adapter_world::{PAGE_AS_TEXT, outcomes, pages, run};
use genai::chat::ChatResponse;
use serde_json::{Value, json};
use tool_runtime::ToolCall;
use tool_runtime_genai::{decode, tool_response, tools};

fn response(stop: &Value) -> ChatResponse {
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
    let decoded = decode(&response(&json!({ "ToolCall": "tool_calls" })));
    assert_eq!((decoded.text.as_str(), decoded.calls[1].status()), ("Let me see.", "arguments_not_object"));
    for decoded in decoded.calls {
        let response = tool_response(&run.exec(decoded.call).await);
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
        for decoded in decode(&response(&stop)).calls {
            assert!(!run.exec(decoded.call).await.is_ok());
        }
        assert_eq!(outcomes(&store).await, ["incomplete_call", "incomplete_call"], "{stop}");
    }
}

#[tokio::test]
async fn files_are_text() {
    let result = pages().exec(ToolCall::text("c1", "pages__show", "{}")).await;
    assert_eq!(tool_response(&result).content, PAGE_AS_TEXT);
}
