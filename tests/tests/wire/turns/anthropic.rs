//! Anthropic Messages: every block goes back as it came.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tests::blocks::{self, is_answered};
use tests::wire::{decode, fixtures, read_json};
use tool_runtime::wire::history::{Part, ResultMessage};
use tool_runtime::wire::{Decoded, DisplayEvent, FinishReason, Format, Message};

use super::{body, losses};

pub(super) const CUTS: [usize; 3] = [usize::MAX, 1, 7];

/// The turn with a result for each call, between two messages of the user.
pub(super) fn history(decoded: &Decoded) -> Vec<Message> {
    let results = decoded.calls.iter().map(|call| Message::Result(ResultMessage::new(call.call.id.clone(), "Done.")));
    let mut history = vec![Message::user("Hello?"), Message::Assistant(decoded.parts())];
    history.extend(results);
    history.push(Message::user("And now?"));
    history
}

/// A stream of events.
pub(super) fn stream(events: &[Value]) -> String {
    let mut out = String::new();
    for event in events {
        write!(out, "event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()).unwrap();
    }
    out
}

/// A streamed message of these blocks, each with its deltas.
pub(super) fn message(blocks: &[(Value, &[Value])], reason: &str) -> String {
    let mut events =
        vec![json!({ "type": "message_start", "message": { "id": "msg_1", "model": "m", "content": [] } })];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        for delta in *deltas {
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason } }));
    stream(&events)
}

pub(super) fn whole(content: &Value, reason: &str) -> String {
    json!({ "type": "message", "id": "msg_1", "model": "m", "content": content, "stop_reason": reason }).to_string()
}

/// The content of the assistant's message in a request.
pub(super) fn sent(history: &[Message]) -> Value {
    let request = body(Format::Anthropic, history, Some("m"));
    let messages = request["messages"].as_array().unwrap();
    messages.iter().find(|message| message["role"] == "assistant").map_or(Value::Null, |said| said["content"].clone())
}

#[test]
fn recorded_turns_go_back_block_for_block() {
    let folder = fixtures("recorded");
    let index = read_json(&folder.join("index.json"));
    let mut seen = 0;
    for case in index.as_array().unwrap().iter().filter(|case| case["format"] == "anthropic") {
        let bytes = std::fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        let turn = blocks::message(&bytes);
        for cut in CUTS {
            let decoded = decode(Format::Anthropic, &bytes, cut);
            let history = history(&decoded);
            let model = decoded.model.as_deref();
            let request = body(Format::Anthropic, &history, model);
            assert!(is_answered(&request, &turn), "{} cut {cut}\n{request}\n{turn}", case["id"]);
            assert_eq!(losses(Format::Anthropic, &history, model), [""; 0], "{}", case["id"]);
            // A document changes nothing.
            let saved: Vec<Message> = serde_json::from_value(serde_json::to_value(&history).unwrap()).unwrap();
            let text = |history: &[Message]| format!("{:?}", Format::Anthropic.encode_messages(history, model).body);
            assert_eq!(text(&saved), text(&history), "{}", case["id"]);
            // Another format or another model gets text and calls, and no sealed part.
            let sealed = sealed(&turn);
            for (format, model) in Format::ALL.iter().map(|format| (*format, Some("another"))) {
                let request = body(format, &history, model).to_string();
                assert!(!sealed.iter().any(|seal| request.contains(seal)), "{} {format}", case["id"]);
                let loses = if format == Format::Anthropic { is_bound(&turn) } else { loses(&turn) };
                assert_eq!(losses(format, &history, model).is_empty(), !loses, "{} {format}", case["id"]);
            }
        }
        seen += 1;
    }
    assert!(seen >= 39, "{seen}");
}

/// The parts of a turn that only Anthropic can read.
fn sealed(turn: &Value) -> Vec<String> {
    let blocks = turn["content"].as_array().unwrap().iter();
    let seals = blocks.filter_map(|block| block["signature"].as_str().or_else(|| block["data"].as_str()));
    seals.map(|seal| json!(seal).to_string()).collect()
}

/// Whether a turn holds a block that is bound to its model. Calls of server tools and their results are not.
fn is_bound(turn: &Value) -> bool {
    let shared = ["text", "tool_use", "server_tool_use", "mcp_tool_use", "container_upload"];
    let kinds = turn["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap());
    kinds.into_iter().any(|kind| !shared.contains(&kind) && !kind.ends_with("_tool_result"))
}

/// Whether a turn holds a part without a place in the requests of another provider.
fn loses(turn: &Value) -> bool {
    let blocks = turn["content"].as_array().unwrap();
    let says = |block: &Value, key: &str| match &block[key] {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    let is_plain = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => !says(block, "citations"),
        "tool_use" => !says(block, "caller"),
        _ => false,
    };
    !blocks.iter().all(is_plain) || !blocks::container(turn).is_null()
}

#[test]
fn streamed_blocks_are_put_together_as_the_sdk_does() {
    let citation = json!({ "type": "web_search_result_location", "cited_text": "Hi", "title": "T", "url": "https://a.example/", "encrypted_index": "e" });
    let page = json!({ "type": "page_location", "cited_text": "Ho", "document_title": "D", "document_index": 0, "file_id": null });
    let text = |text: &str| json!({ "type": "text_delta", "text": text });
    let input = |text: &str| json!({ "type": "input_json_delta", "partial_json": text });
    let cites = |citation: &Value| json!({ "type": "citations_delta", "citation": citation });
    let body = message(
        &[
            (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                &[
                    json!({ "type": "thinking_delta", "thinking": "Let me " }),
                    json!({ "type": "thinking_delta", "thinking": "\"see\"." }),
                    json!({ "type": "signature_delta", "signature": "c2ln+/=" }),
                ],
            ),
            (json!({ "type": "redacted_thinking", "data": "EmwK" }), &[]),
            (
                json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} }),
                &[input("{\"query\""), input(":\"x\"}")],
            ),
            (json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{ "n": 0.1 }] }), &[]),
            (json!({ "type": "text", "text": "", "citations": [] }), &[cites(&citation), text("Hi"), cites(&page)]),
            (
                json!({ "type": "text", "text": "" }),
                &[text(" there"), json!({ "type": "thinking_delta", "thinking": "no" })],
            ),
            (
                json!({ "type": "compaction", "content": null }),
                &[json!({ "type": "compaction_delta", "content": "c", "encrypted_content": "e" })],
            ),
            (json!({ "type": "later", "y": 2 }), &[json!({ "type": "later_delta", "z": 3 })]),
            (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                &[json!({ "type": "signature_delta", "signature": "b" })],
            ),
            (
                json!({ "type": "tool_use", "id": "t", "name": "a", "input": {}, "caller": { "type": "direct" } }),
                &[input("{\"n\": 1}")],
            ),
        ],
        "tool_use",
    );
    let turn = blocks::message(body.as_bytes());
    for cut in CUTS {
        let decoded = decode(Format::Anthropic, body.as_bytes(), cut);
        assert_eq!((decoded.finish, decoded.text.as_str()), (FinishReason::ToolCalls, "Hi there"));
        let history = history(&decoded);
        let request = super::body(Format::Anthropic, &history, Some("m"));
        assert!(is_answered(&request, &turn), "cut {cut}\n{request}\n{turn}");
        assert_eq!(losses(Format::Anthropic, &history, Some("m")), [""; 0]);
        let sources: Vec<_> = decoded
            .parts()
            .into_iter()
            .filter_map(|part| match part {
                Part::Citation(citation) => Some((citation.title, citation.url, citation.quote)),
                _ => None,
            })
            .collect();
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(sources, [(own("T"), own("https://a.example/"), own("Hi")), (own("D"), None, own("Ho"))]);
        let reasoning: Vec<_> = decoded
            .parts()
            .iter()
            .filter_map(|part| match part {
                Part::Reasoning { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(reasoning, ["Let me \"see\".", "", ""]);
    }
}

#[test]
fn known_deltas_of_later_blocks_are_applied() {
    let deltas = [
        json!({ "type": "text_delta", "text": "b" }),
        json!({ "type": "thinking_delta", "thinking": "t" }),
        json!({ "type": "signature_delta", "signature": "s" }),
        json!({ "type": "citations_delta", "citation": { "n": 1 } }),
        json!({ "type": "input_json_delta", "partial_json": "{\"q\":" }),
        json!({ "type": "input_json_delta", "partial_json": "1}" }),
    ];
    let body = message(&[(json!({ "type": "later", "text": "a", "input": {}, "last": null }), &deltas)], "end_turn");
    let expected = json!([{ "type": "later", "text": "ab", "thinking": "t", "signature": "s", "citations": [{ "n": 1 }], "input": { "q": 1 }, "last": null }]);
    for cut in CUTS {
        assert_eq!(sent(&history(&decode(Format::Anthropic, body.as_bytes(), cut))), expected);
    }
}

#[test]
fn strings_and_numbers_go_back_as_they_were_written() {
    let odd = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"n":1.0e400,"i":12345678901234567890123,"t":"\u00e9\/ \ud83d"}]}"#;
    let call = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"z":1.50,"a":"\u00e9"}}"#;
    let body = format!(r#"{{"type":"message","model":"m","content":[{call},{odd}],"stop_reason":"end_turn"}}"#);
    let history = history(&decode(Format::Anthropic, body.as_bytes(), usize::MAX));
    let messages = Format::Anthropic.encode_messages(&history, Some("m")).body["messages"].to_string();
    assert!(messages.contains(&format!("[{call},{odd}]")), "{messages}");
}

#[test]
fn the_last_container_is_named() {
    let turn = |id: &str| {
        let container = json!({ "id": id, "expires_at": "2026-05-08T20:54:01Z" });
        let mut message: Value =
            serde_json::from_str(&whole(&json!([{ "type": "text", "text": "Hi" }]), "end_turn")).unwrap();
        message["container"] = container;
        Message::Assistant(decode(Format::Anthropic, message.to_string().as_bytes(), 7).parts())
    };
    let history = [Message::user("a"), turn("c1"), Message::user("b"), turn("c2"), Message::user("c")];
    assert_eq!(body(Format::Anthropic, &history, Some("m"))["container"], "c2");
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), [""; 0]);
    let streamed = message(&[], "end_turn").replace("\"stop_reason\"", "\"container\":{\"id\":\"c3\"},\"stop_reason\"");
    let history = [Message::Assistant(decode(Format::Anthropic, streamed.as_bytes(), 1).parts())];
    assert_eq!(body(Format::Anthropic, &history, Some("m")), json!({ "container": "c3", "messages": [] }));
}

#[test]
fn only_thinking_is_shown() {
    let body = message(
        &[
            (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                &[
                    json!({ "type": "thinking_delta", "thinking": "Hm." }),
                    json!({ "type": "signature_delta", "signature": "canary" }),
                ],
            ),
            (json!({ "type": "redacted_thinking", "data": "canary" }), &[]),
            (json!({ "type": "server_tool_use", "id": "canary", "input": { "q": "canary" } }), &[]),
            (
                json!({ "type": "tool_use", "id": "t", "name": "a", "input": {}, "caller": { "tool_id": "canary" } }),
                &[],
            ),
        ],
        "tool_use",
    );
    let mut decoder = Format::Anthropic.decoder();
    let (mut shown, mut reasoning) = (String::new(), String::new());
    for event in decoder.push(body.as_bytes()) {
        write!(shown, "{event:?}").unwrap();
        if let DisplayEvent::Reasoning(text) = event {
            reasoning.push_str(&text);
        }
    }
    let decoded = decoder.finish();
    write!(shown, "{decoded:?} {}", serde_json::to_string(&decoded).unwrap()).unwrap();
    assert_eq!(reasoning, "Hm.");
    assert!(!shown.contains("canary"), "{shown}");
}
