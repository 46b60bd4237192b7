//! Another model of the same provider gets the calls and results of the provider's own tools. Only sealed parts stay
//! with their model.

use serde_json::{Value, json};
use tests::wire::decode;
use tool_runtime::wire::{Format, Message};

use super::anthropic::{history, whole};
use super::{body, losses};

/// A turn with this body, saved and restored.
fn turn(format: Format, body: &Value) -> Vec<Message> {
    let history = history(&decode(format, body.to_string().as_bytes(), usize::MAX));
    serde_json::from_value(serde_json::to_value(&history).unwrap()).unwrap()
}

#[test]
fn anthropic_gets_searches_code_and_citations() {
    let search = json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": { "query": "q" } });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "s1",
        "content": [{ "type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "Eq" }] });
    let code = json!({ "type": "server_tool_use", "id": "s2", "name": "code_execution", "input": { "code": "1" } });
    let printed = json!({ "type": "code_execution_tool_result", "tool_use_id": "s2",
        "content": { "type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": [] } });
    let cited = json!({ "type": "text", "text": "It is A.", "citations": [
        { "type": "web_search_result_location", "url": "https://a.example", "encrypted_index": "Eo", "cited_text": "A" }] });
    let own = json!({ "type": "tool_use", "id": "c1", "name": "core__add", "input": {},
        "caller": { "type": "code_execution_20250825", "tool_id": "s2" } });
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "Sg" });
    let redacted = json!({ "type": "redacted_thinking", "data": "Em" });
    let shared = [&search, &found, &code, &printed, &cited, &own];
    let content = json!([thinking, redacted, search, found, code, printed, cited, own]);
    let mut message: Value = serde_json::from_str(&whole(&content, "tool_use")).unwrap();
    message["container"] = json!({ "id": "container_1", "expires_at": "2026-01-01T00:00:00Z" });
    let history = turn(Format::Anthropic, &message);
    for (model, sealed) in [("m", true), ("another", false)] {
        let request = body(Format::Anthropic, &history, Some(model));
        let sent = request["messages"][1]["content"].as_array().unwrap();
        let expected = if sealed { vec![&thinking, &redacted] } else { Vec::new() };
        let expected: Vec<_> = expected.into_iter().chain(shared).collect();
        assert_eq!(sent.iter().collect::<Vec<_>>(), expected, "{model}");
        assert_eq!(request["container"], "container_1", "{model}");
        let lost = if sealed { 0 } else { 2 };
        assert_eq!(losses(Format::Anthropic, &history, Some(model)), vec!["reasoning at /1"; lost], "{model}");
    }
}

#[test]
fn responses_gets_searches_and_code() {
    let search = |id: &str| json!({ "type": "web_search_call", "id": id, "status": "completed", "action": { "type": "search", "query": "q" } });
    let code = json!({ "type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1",
        "container_id": "cntr_1", "outputs": [{ "type": "logs", "logs": "1" }] });
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
    let text = json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "It is A.", "annotations": [] }] });
    let response = |output: Value| json!({ "id": "r", "model": "m", "status": "completed", "output": output });
    let items = |history: &[Message], model| {
        let mut input = body(Format::OpenAiResponses, history, Some(model))["input"].take();
        input.as_array_mut().unwrap().retain(|item| item["role"] != "user");
        input
    };
    // A model without reasoning.
    let plain = turn(Format::OpenAiResponses, &response(json!([search("ws_1"), code, text])));
    assert_eq!(items(&plain, "m"), json!([search("ws_1"), code, text]));
    let sent = items(&plain, "another");
    assert_eq!((&sent[0], &sent[1]), (&search("ws_1"), &code));
    assert_eq!(sent[2]["content"][0]["text"], "It is A.");
    // An item that came with reasoning is refused without it: of a search the id gives way, other items need theirs.
    let reasoned = turn(Format::OpenAiResponses, &response(json!([reasoning, search("ws_1"), code, text])));
    assert_eq!(items(&reasoned, "m"), json!([reasoning, search("ws_1"), code, text]));
    let sent = items(&reasoned, "another");
    let mut unnamed = search("ws_1");
    unnamed.as_object_mut().unwrap().remove("id");
    assert_eq!(sent[0], unnamed);
    assert!(sent.as_array().unwrap().len() == 2 && !sent.to_string().contains("encrypted_content"), "{sent}");
    let lost = losses(Format::OpenAiResponses, &reasoned, Some("another"));
    assert_eq!(lost[..2], ["reasoning at /1", "the id of a web search whose reasoning is gone at /1"]);
}

#[test]
fn gemini_gets_code_that_is_not_signed() {
    let code = json!({ "executableCode": { "language": "PYTHON", "code": "1" } });
    let signed = json!({ "executableCode": { "language": "PYTHON", "code": "2" }, "thoughtSignature": "Sg" });
    let printed = json!({ "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "1" } });
    let thought = json!({ "text": "Hm.", "thought": true });
    let response = json!({ "modelVersion": "m", "candidates": [{ "finishReason": "STOP",
        "content": { "role": "model", "parts": [thought, code, printed, signed, { "text": "One." }] } }] });
    let history = turn(Format::Gemini, &response);
    let sent = |model| body(Format::Gemini, &history, Some(model))["contents"][1]["parts"].take();
    assert_eq!(sent("m"), json!([thought, code, printed, signed, { "text": "One." }]));
    assert_eq!(sent("another"), json!([code, printed, { "text": "One." }]));
    assert_eq!(losses(Format::Gemini, &history, Some("another")).len(), 2);
    // Nothing of it goes to another format.
    for format in Format::ALL.iter().filter(|format| **format != Format::Gemini) {
        let sent = body(*format, &history, Some("m")).to_string();
        assert!(!sent.contains("PYTHON") && !sent.contains("OUTCOME_OK"), "{format}");
    }
}
