//! Assembles a response's blocks like Anthropic's official SDKs, and finds them in a request.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // A test cannot continue without its fixture.

use serde_json::{Map, Value, json};

/// Assembles the message of a response, whole or streamed, by the rules of the SDKs.
#[must_use]
pub fn message(body: &[u8]) -> Value {
    if let Ok(message) = serde_json::from_slice(body) {
        return message;
    }
    let text = std::str::from_utf8(body).unwrap();
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut message = Value::Null;
    for event in events.map(|data| serde_json::from_str::<Value>(data).unwrap()) {
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let at = usize::try_from(event["index"].as_u64().unwrap()).unwrap();
                apply(message["content"][at].as_object_mut().unwrap(), &event["delta"]);
            }
            "content_block_stop" => {
                let at = usize::try_from(event["index"].as_u64().unwrap()).unwrap();
                let block = message["content"][at].as_object_mut().unwrap();
                if let Some(Value::String(input)) = block.remove("partial") {
                    block.insert("input".to_owned(), serde_json::from_str(&input).unwrap());
                }
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                if !event["delta"]["container"].is_null() {
                    message["container"] = event["delta"]["container"].clone();
                }
            }
            _ => {}
        }
    }
    message
}

fn apply(block: &mut Map<String, Value>, delta: &Value) {
    let (kind, change) = (block["type"].as_str().unwrap().to_owned(), delta["type"].as_str().unwrap());
    let mut append = |key: &str, text: &Value| {
        let before = block.get(key).and_then(Value::as_str).unwrap_or_default();
        block.insert(key.to_owned(), Value::from(before.to_owned() + text.as_str().unwrap()));
    };
    match (kind.as_str(), change) {
        ("text", "text_delta") => append("text", &delta["text"]),
        ("thinking", "thinking_delta") => append("thinking", &delta["thinking"]),
        ("tool_use" | "server_tool_use" | "mcp_tool_use", "input_json_delta") if delta["partial_json"] != "" => {
            append("partial", &delta["partial_json"]);
        }
        ("thinking", "signature_delta") => {
            block.insert("signature".to_owned(), delta["signature"].clone());
        }
        ("text", "citations_delta") => {
            let mut citations = block.get("citations").and_then(Value::as_array).cloned().unwrap_or_default();
            citations.push(delta["citation"].clone());
            block.insert("citations".to_owned(), citations.into());
        }
        ("compaction", "compaction_delta") => {
            for (key, value) in delta.as_object().unwrap().iter().filter(|(key, _)| *key != "type") {
                block.insert(key.clone(), value.clone());
            }
        }
        _ => {}
    }
}

/// Returns the blocks that the next request has to contain, without blank text and the file ids of citations, which the
/// API refuses.
#[must_use]
pub fn sent_back(message: &Value) -> Vec<Value> {
    let mut message = message.clone();
    for block in message["content"].as_array_mut().unwrap() {
        for citation in block.get_mut("citations").and_then(Value::as_array_mut).into_iter().flatten() {
            citation.as_object_mut().unwrap().remove("file_id");
        }
    }
    let is_blank = |block: &Value| block["type"] == "text" && block["text"].as_str().unwrap().trim().is_empty();
    message["content"].as_array().unwrap().iter().filter(|block| !is_blank(block)).cloned().collect()
}

/// The ids of the calls of a message.
#[must_use]
pub fn calls(message: &Value) -> Vec<String> {
    let calls = message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
    calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect()
}

/// The container that the next request has to name.
#[must_use]
pub fn container(message: &Value) -> Value {
    message.get("container").and_then(|container| container.get("id")).cloned().unwrap_or_default()
}

/// Whether a request contains the turn that follows the first message of the user: its blocks in one message, its
/// container, and the results of its calls at the beginning of the user's next message.
#[must_use]
pub fn is_answered(request: &Value, turn: &Value) -> bool {
    let blocks = sent_back(turn);
    let calls = calls(turn);
    let messages = request["messages"].as_array().unwrap();
    let said = messages.iter().position(|message| message["role"] == "assistant");
    let is_kept = match said {
        Some(at) => {
            let next =
                messages.get(at + 1).and_then(|message| message["content"].as_array()).cloned().unwrap_or_default();
            let answers = |(at, id): (usize, &String)| next.get(at).is_some_and(|block| block["tool_use_id"] == **id);
            messages[at]["content"] == json!(blocks) && calls.iter().enumerate().all(answers)
        }
        None => blocks.is_empty(),
    };
    is_kept && request.get("container").cloned().unwrap_or_default() == container(turn)
}
