//! Ollama: thinking, ids and pictures of a turn go back with it.

use serde_json::{Value, json};
use tests::wire::{decode, fixtures, read_json};
use tool_runtime::media::Media;
use tool_runtime::wire::history::{Part, ResultMessage};
use tool_runtime::wire::{Format, Message};

use super::{body, losses};

const FORMAT: Format = Format::Ollama;

/// The turn and a result for each of its calls, as they are sent to a model.
fn sent(parts: Vec<Part>, model: Option<&str>) -> Value {
    let results = parts.iter().filter_map(Part::as_call).map(|call| ResultMessage::new(call.id.clone(), "done"));
    let results: Vec<_> = results.map(Message::Result).collect();
    let history: Vec<_> = std::iter::once(Message::Assistant(parts)).chain(results).collect();
    // A store may read the history as JSON and write it again.
    let saved: Value = serde_json::from_str(&serde_json::to_string(&history).unwrap()).unwrap();
    let restored: Vec<Message> = serde_json::from_value(saved).unwrap();
    assert_eq!(losses(FORMAT, &restored, model), [""; 0]);
    body(FORMAT, &restored, model)["messages"].take()
}

/// The message of a recorded response, put together without this crate.
fn message(text: &str) -> Value {
    let mut whole = json!({ "role": "assistant", "content": "" });
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        for key in ["content", "thinking"] {
            if let Some(more) = line["message"][key].as_str().filter(|more| !more.is_empty()) {
                whole[key] = format!("{}{more}", whole[key].as_str().unwrap_or_default()).into();
            }
        }
        if let Some(calls) = line["message"]["tool_calls"].as_array() {
            let before = whole["tool_calls"].as_array().cloned().unwrap_or_default();
            whole["tool_calls"] = before.into_iter().chain(calls.iter().cloned()).collect();
        }
    }
    whole
}

#[test]
fn recorded_turns_go_back_whole() {
    let index = read_json(&fixtures("recorded/index.json"));
    let mut calls = 0;
    for case in index.as_array().unwrap().iter().filter(|case| case["format"] == FORMAT.as_str()) {
        let bytes = std::fs::read(fixtures("recorded").join(case["file"].as_str().unwrap())).unwrap();
        let came = message(std::str::from_utf8(&bytes).unwrap());
        for cut in [usize::MAX, 1, 7] {
            let decoded = decode(FORMAT, &bytes, cut);
            let sent = sent(decoded.parts(), decoded.model.as_deref());
            assert_eq!(sent[0], came, "{} cut {cut}", case["id"]);
            for (at, call) in came["tool_calls"].as_array().into_iter().flatten().enumerate() {
                assert_eq!(sent[at + 1]["tool_name"], call["function"]["name"]);
                assert_eq!(sent[at + 1].get("tool_call_id"), call.get("id"), "{}", case["id"]);
                calls += 1;
            }
        }
    }
    assert!(calls > 0);
}

#[test]
fn calls_keep_their_ids_and_places() {
    let call =
        |id: &str, at: i64| json!({ "id": id, "function": { "index": at, "name": "core__ping", "arguments": {} } });
    let line = json!({
        "model": "m", "done": true, "done_reason": "stop",
        "message": { "content": "", "thinking": "Hm", "tool_calls": [call("a", 0), call("b", 1)] },
    });
    let turn = decode(FORMAT, line.to_string().as_bytes(), 7).parts();
    let answer = |id: &str| json!({ "role": "tool", "tool_name": "core__ping", "tool_call_id": id, "content": "done" });
    let message =
        json!({ "role": "assistant", "content": "", "thinking": "Hm", "tool_calls": [call("a", 0), call("b", 1)] });
    assert_eq!(sent(turn, Some("m")), json!([message, answer("a"), answer("b")]));
}

#[test]
fn pictures_go_back_and_turns_without_anything_do_not() {
    let line = json!({ "model": "m", "done": true, "message": { "content": "Here.", "images": ["iVBORw0KGgo=", 1] } });
    let turn = decode(FORMAT, line.to_string().as_bytes(), 1).parts();
    assert_eq!(turn[1], Part::Media(Media::base64("image/png", "iVBORw0KGgo=").unwrap()));
    let message = json!({ "role": "assistant", "content": "Here.", "images": ["iVBORw0KGgo="] });
    assert_eq!(sent(turn, Some("m")), json!([message]));

    let line = json!({ "model": "m", "done": true, "message": { "thinking": "Hm" } });
    let history = [Message::Assistant(decode(FORMAT, line.to_string().as_bytes(), 1).parts())];
    assert_eq!(body(FORMAT, &history, Some("m")), json!({ "messages": [] }));
    assert_eq!(losses(FORMAT, &history, Some("m")), ["reasoning without an answer at /0"]);
}

#[test]
fn members_that_no_one_knows_go_back() {
    let bytes = r#"{"model":"m","message":{"role":"assistant","content":"Y","thought_text":"Let me ","odd":[1]}}
{"model":"m","message":{"role":"assistant","content":"es.","thought_text":"see.","odd":[2]}}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#;
    for size in [usize::MAX, 1, 7] {
        let turn = [Message::Assistant(decode(Format::Ollama, bytes.as_bytes(), size).parts())];
        let kept = json!({"role": "assistant", "content": "Yes.", "thought_text": "Let me see.", "odd": [2]});
        assert_eq!(body(Format::Ollama, &turn, Some("m"))["messages"][0], kept);
        let other = json!({"role": "assistant", "content": "Yes."});
        assert_eq!(body(Format::Ollama, &turn, Some("another"))["messages"][0], other);
    }
}
