//! Tests that every call in a response of async-openai goes through the gate, and that async-openai sends the results.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

use adapter_world::{PAGE_AS_TEXT, outcomes, pages, run};
use async_openai::types::chat::CreateChatCompletionResponse;
use async_openai::types::responses::{InputItem, Item, Response};
use serde_json::{Value, json};
use tool_runtime::call::CallId;
use tool_runtime::{ToolCall, ToolExecResult};
use tool_runtime_async_openai::{
    chat_message, chat_tools, decode_chat, decode_response, response_item, response_tools,
};

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

    let decoded = decode_chat(&response("tool_calls"));
    assert_eq!(decoded.text, "Let me see.");
    let result = run.exec(decoded.calls[0].call.clone()).await;
    let told: Value = serde_json::to_value(chat_message(&result)).unwrap();
    assert_eq!(told, json!({ "role": "tool", "tool_call_id": "c1", "content": "5" }));

    let cut = decode_chat(&response("length"));
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
    let decoded = decode_response(&response);
    assert_eq!(decoded.calls[0].call.id, CallId::new("c1"));
    let told = response_item(&run.exec(decoded.calls[0].call.clone()).await);
    assert!(matches!(&told, InputItem::Item(Item::FunctionCallOutput(_))));
    let told = serde_json::to_value(told).unwrap();
    assert_eq!(told, json!({ "type": "function_call_output", "call_id": "c1", "output": "5" }));
    assert_eq!(outcomes(&store).await, ["ok"]);
}

async fn shown() -> ToolExecResult {
    pages().exec(ToolCall::text("c1", "pages__show", "{}")).await
}

#[tokio::test]
async fn chat_completions_get_files_as_text() {
    let told = serde_json::to_value(chat_message(&shown().await)).unwrap();
    assert_eq!(told["content"], PAGE_AS_TEXT);
}

#[tokio::test]
async fn responses_get_the_files() {
    let told: Value = serde_json::to_value(response_item(&shown().await)).unwrap();
    assert_eq!(told["call_id"], "c1");
    assert_eq!(told["output"][0], json!({ "type": "input_text", "text": "1" }));
    let image = told["output"][1]["image_url"].as_str().unwrap();
    assert!(image.starts_with("data:image/png;base64,iVBORw0KGgo"), "{told}");
    assert_eq!((&told["output"][2]["type"], &told["output"][2]["filename"]), (&json!("input_file"), &json!("log.txt")));
}
