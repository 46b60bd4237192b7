//! Anthropic Messages: every block goes back as it came, or is left out as the provider demands.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tests::blocks::{self, is_answered};
use tests::wire::{decode, fixtures, read_json};
use tool_runtime::wire::history::{Part, ResultMessage};
use tool_runtime::wire::{DecodeOptions, Decoded, DisplayEvent, Finish, Format, Message, WireErrorKind};

use super::{body, losses};

const CUTS: [usize; 3] = [usize::MAX, 1, 7];

/// The turn with a result for each call, between two messages of the user.
fn history(decoded: &Decoded) -> Vec<Message> {
    let results = decoded.calls.iter().map(|call| Message::Result(ResultMessage::new(call.call.id.clone(), "Done.")));
    let mut history = vec![Message::user("Hello?"), Message::Assistant(decoded.parts())];
    history.extend(results);
    history.push(Message::user("And now?"));
    history
}

/// A stream of events.
fn stream(events: &[Value]) -> String {
    let mut out = String::new();
    for event in events {
        write!(out, "event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()).unwrap();
    }
    out
}

/// A streamed message of these blocks, each with its deltas.
fn message(blocks: &[(Value, &[Value])], reason: &str) -> String {
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

fn whole(content: &Value, reason: &str) -> String {
    json!({ "type": "message", "id": "msg_1", "model": "m", "content": content, "stop_reason": reason }).to_string()
}

/// What the assistant's message of a request holds.
fn sent(history: &[Message]) -> Value {
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
            // Another format or another model gets text and calls, and nothing of what is sealed.
            let sealed = sealed(&turn);
            for (format, model) in Format::ALL.iter().map(|format| (*format, Some("another"))) {
                let request = body(format, &history, model).to_string();
                assert!(!sealed.iter().any(|seal| request.contains(seal)), "{} {format}", case["id"]);
                assert_eq!(losses(format, &history, model).is_empty(), !loses(&turn), "{} {format}", case["id"]);
            }
        }
        seen += 1;
    }
    assert!(seen >= 39, "{seen}");
}

/// What only Anthropic can read of a turn.
fn sealed(turn: &Value) -> Vec<String> {
    let blocks = turn["content"].as_array().unwrap().iter();
    let seals = blocks.filter_map(|block| block["signature"].as_str().or_else(|| block["data"].as_str()));
    seals.map(|seal| json!(seal).to_string()).collect()
}

/// Whether a turn holds what another provider has no place for.
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
    let page = json!({ "type": "page_location", "cited_text": "Ho", "document_title": "D", "document_index": 0 });
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
        assert_eq!((decoded.finish, decoded.text.as_str()), (Finish::ToolCalls, "Hi there"));
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
                Part::Reasoning(reasoning) => Some(reasoning.text().to_owned()),
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
fn thinking_without_its_end_or_its_signature_does_not_go_back() {
    let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let thinks = json!({ "type": "thinking_delta", "thinking": "Hm." });
    let signs = json!({ "type": "signature_delta", "signature": "s" });
    let text = json!({ "type": "text", "text": "Hi" });
    let unsigned = message(&[(start.clone(), &[thinks.clone()]), (text.clone(), &[])], "end_turn");
    let signed = message(&[(start.clone(), &[thinks.clone(), signs.clone()])], "end_turn");
    let (cut, _) = signed.split_once("event: content_block_stop").unwrap();
    let whole = whole(&json!([{ "type": "thinking", "thinking": "Hm." }, text]), "end_turn");
    for (body, kept) in [(unsigned.as_str(), json!([text])), (cut, Value::Null), (&whole, json!([text]))] {
        for size in CUTS {
            let history = history(&decode(Format::Anthropic, body.as_bytes(), size));
            assert_eq!(sent(&history), kept);
            assert_eq!(losses(Format::Anthropic, &history, Some("m")), ["reasoning at /1"]);
        }
    }
    // The end of the message ends its blocks too.
    let unended =
        signed.replace("event: content_block_stop\ndata: {\"index\":0,\"type\":\"content_block_stop\"}\n\n", "");
    assert_ne!(signed, unended);
    assert_eq!(sent(&history(&decode(Format::Anthropic, unended.as_bytes(), 7)))[0]["signature"], "s");
}

#[test]
fn a_request_never_ends_with_thinking() {
    let thinks = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" });
    let text = json!({ "type": "text", "text": "Hi" });
    for (content, last) in [(json!([text, thinks, thinks]), json!([text])), (json!([thinks]), Value::Null)] {
        let body = whole(&content, "pause_turn");
        let decoded = decode(Format::Anthropic, body.as_bytes(), usize::MAX);
        assert_eq!(decoded.finish, Finish::Pause);
        let mut history = history(&decoded);
        assert_eq!(sent(&history), content, "something follows");
        history.pop();
        assert_eq!(sent(&history), last);
        assert!(losses(Format::Anthropic, &history, Some("m")).iter().all(|loss| loss == "reasoning at /1"));
    }
}

#[test]
fn a_server_call_waits_for_its_result_until_the_user_writes() {
    let call = |id: &str| json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} });
    let result = |id: &str| json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] });
    let text = json!({ "type": "text", "text": "Hi" });
    let turn = |content: Value, reason: &str| {
        Message::Assistant(decode(Format::Anthropic, whole(&content, reason).as_bytes(), 7).parts())
    };
    let paused = || turn(json!([text, call("s"), call("r"), result("r")]), "pause_turn");
    let lost = "a call of a server tool without its result at /1";
    let ask = || Message::user("Hello?");
    // Paused: back as it is.
    let history = [ask(), paused()];
    assert_eq!(sent(&history), json!([text, call("s"), call("r"), result("r")]));
    // The provider went on, and brought the result.
    let history = [ask(), paused(), turn(json!([result("s"), text]), "end_turn"), ask()];
    assert_eq!(sent(&history), json!([text, call("s"), call("r"), result("r"), result("s"), text]));
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), [""; 0]);
    // The user wrote before it did.
    let history = [ask(), paused(), ask()];
    assert_eq!(sent(&history), json!([text, call("r"), result("r")]));
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), [lost]);
    // Nothing else was said: no empty message.
    let history = [ask(), turn(json!([call("s")]), "max_tokens"), ask()];
    assert_eq!(body(Format::Anthropic, &history, Some("m"))["messages"].as_array().unwrap().len(), 1);
    // Code that waits for a result of ours: both go back, and the container with them.
    let code =
        json!({ "type": "server_tool_use", "id": "s", "name": "code_execution", "input": { "code": "await a()" } });
    let used = json!({ "type": "tool_use", "id": "t", "name": "a", "input": {}, "caller": { "type": "code_execution_20250825", "tool_id": "s" } });
    let mut history = vec![ask(), turn(json!([code, used]), "tool_use"), Message::Result(ResultMessage::new("t", "1"))];
    assert_eq!(sent(&history), json!([code, used]));
    history.push(ask());
    assert_eq!(sent(&history), json!([{ "type": "tool_use", "id": "t", "name": "a", "input": {} }]));
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), [lost, "which code made a call at /1"]);
}

#[test]
fn a_server_call_that_broke_off_is_left_out() {
    let deltas = [json!({ "type": "input_json_delta", "partial_json": "{\"query\":\"x" })];
    let call = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let body = message(&[(call, &deltas)], "max_tokens");
    for cut in CUTS {
        let decoded = decode(Format::Anthropic, body.as_bytes(), cut);
        assert_eq!(decoded.finish, Finish::Length);
        let history = [Message::Assistant(decoded.parts())];
        assert_eq!(sent(&history), Value::Null);
        assert_eq!(losses(Format::Anthropic, &history, Some("m")), ["a call of a server tool that broke off at /0"]);
    }
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
fn parts_of_another_model_are_left_out() {
    let content = json!([
        { "type": "thinking", "thinking": "Hm.", "signature": "s" },
        { "type": "redacted_thinking", "data": "d" },
        { "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} },
        { "type": "web_search_tool_result", "tool_use_id": "s", "content": [] },
        { "type": "text", "text": "Hi", "citations": null },
    ]);
    let history = history(&decode(Format::Anthropic, whole(&content, "end_turn").as_bytes(), usize::MAX));
    let request = body(Format::Anthropic, &history, Some("another"));
    assert_eq!(request["messages"][1]["content"], json!([{ "type": "text", "text": "Hi" }]));
    let carried = "what only another provider or model understands at /1";
    let expected = ["reasoning at /1", "reasoning at /1", carried, carried];
    assert_eq!(losses(Format::Anthropic, &history, Some("another")), expected);
}

#[test]
fn bad_blocks_are_refused() {
    let start = r#"{"type":"message_start","message":{"id":"m","content":[]}}"#;
    let kind = |body: &str| {
        let errors = CUTS.map(|cut| decode(Format::Anthropic, body.as_bytes(), cut).error.map(|error| error.kind));
        assert!(errors.iter().all(|error| *error == errors[0]));
        errors[0]
    };
    for block in ["5", "null", "[]", "\"text\""] {
        let event = format!(
            "data: {start}\n\ndata: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{block}}}\n\n"
        );
        assert_eq!(kind(&event), Some(WireErrorKind::ProtocolViolation), "{block}");
        let body = format!(r#"{{"type":"message","content":[{block}],"stop_reason":"end_turn"}}"#);
        assert_eq!(kind(&body), Some(WireErrorKind::ProtocolViolation), "{block}");
    }
    // Indexes may leave gaps, but a second call under one index could be the first one again.
    let used = |id: &str, index: i64| json!({ "type": "content_block_start", "index": index, "content_block": { "type": "tool_use", "id": id, "name": "a", "input": {} } });
    let ended = json!({ "type": "content_block_stop", "index": 7 });
    let begin: Value = serde_json::from_str(start).unwrap();
    let reason = json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } });
    let twice = stream(&[begin.clone(), used("t", 7), used("u", 7), reason.clone()]);
    assert_eq!(kind(&twice), Some(WireErrorKind::ProtocolViolation));
    assert_eq!(kind(&stream(&[begin.clone(), used("t", 7), ended, used("u", 7), used("v", -4), reason])), None);
    // What is carried was put together at the end of its block.
    let thinking = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking" } });
    let stop = json!({ "type": "content_block_stop", "index": 0 });
    let late =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "s" } });
    assert_eq!(kind(&stream(&[begin, thinking, stop, late])), Some(WireErrorKind::ProtocolViolation));
}

#[test]
fn citations_without_text_are_reported() {
    let citation = json!({ "type": "char_location", "cited_text": "Hi", "document_title": "D" });
    let content = json!([{ "type": "text", "text": "", "citations": [citation, 5] }]);
    let history = history(&decode(Format::Anthropic, whole(&content, "end_turn").as_bytes(), usize::MAX));
    assert_eq!(sent(&history), Value::Null);
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), ["a citation at /1"]);
}

#[test]
fn what_is_carried_is_bounded() {
    let data = "x".repeat(9 << 20);
    let result = json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": data });
    let input = json!({ "type": "input_json_delta", "partial_json": format!("\"{data}\"") });
    let streamed = message(&[(json!({ "type": "server_tool_use", "id": "s", "input": {} }), &[input])], "end_turn");
    for body in [whole(&json!([result]), "end_turn"), streamed] {
        let mut decoder = Format::Anthropic.decoder(DecodeOptions::default().with_max_frame_bytes(16 << 20));
        decoder.push(body.as_bytes());
        assert_eq!(decoder.finish().error.unwrap().kind, WireErrorKind::LimitExceeded);
    }
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
    let mut decoder = Format::Anthropic.decoder(DecodeOptions::default());
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
