//! Responses: the output items of a turn go back as they came and in their place.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tests::wire::{decode, fixtures, read_json};
use tool_runtime::media::Media;
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::{Decoded, DisplayEvent, FinishReason, Format, Message};

use super::{body, losses};

const FORMAT: Format = Format::OpenAiResponses;

/// Items that wait for the client, and the reasoning right before them, which would have no item after it.
const WAITING: [&str; 5] =
    ["apply_patch_call", "local_shell_call", "mcp_approval_request", "shell_call", "tool_search_call"];

/// The output of a recorded response, read without this crate: of a stream, the output of the last event.
fn output(text: &str, stream: bool) -> Option<Vec<Box<RawValue>>> {
    let field = |object: &str, name: &str| -> Option<Box<RawValue>> {
        let object: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
        object.get(name).cloned()
    };
    let response = if stream {
        let last = text.lines().rfind(|line| line.contains(r#""response.completed""#) && line.starts_with("data:"))?;
        field(last.trim_start_matches("data:"), "response")?
    } else {
        RawValue::from_string(text.trim().to_owned()).ok()?
    };
    serde_json::from_str(field(response.get(), "output")?.get()).ok()
}

/// The turn, and a result for each of its calls.
fn turn(decoded: &Decoded) -> Vec<Message> {
    let results = decoded.calls.iter().map(|call| Message::Result(ResultMessage::new(call.call.id.clone(), "done")));
    std::iter::once(Message::Assistant(decoded.parts())).chain(results).collect()
}

/// A history after it was saved by a store that reads JSON, and restored.
fn restored(history: &[Message]) -> Vec<Message> {
    let saved: Value = serde_json::from_str(&serde_json::to_string(history).unwrap()).unwrap();
    serde_json::from_value(saved).unwrap()
}

fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or_default()
}

/// The items of an output that a provider takes back.
fn taken_back(output: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for item in output {
        let hosted = item["execution"] == "server" || output.iter().any(|other| kind(other).ends_with("_output"));
        if WAITING.contains(&kind(item)) && !hosted {
            while kept.last().is_some_and(|last| kind(last) == "reasoning") {
                kept.pop();
            }
        } else {
            kept.push(item.clone());
        }
    }
    kept
}

/// A provider that keeps no response knows no reasoning by its id alone.
#[test]
fn reasoning_that_nobody_has_does_not_go_back() {
    let reasoning = |more: Value| {
        let mut item =
            json!({ "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "Hm." }] });
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "name": "a", "arguments": "{}" });
    let anew = json!({ "type": "function_call", "call_id": "c", "name": "a", "arguments": "{}" });
    let said = json!({ "content": [{ "type": "reasoning_text", "text": "Hm." }] });
    for (store, more, goes_back) in [
        (json!(false), json!({}), false),
        (json!(false), json!({ "encrypted_content": null }), false),
        (json!(false), json!({ "encrypted_content": "e" }), true),
        (json!(false), said, true),
        (json!(true), json!({}), true),
        (Value::Null, json!({}), true),
    ] {
        let items = json!([reasoning(more), call]);
        let response =
            json!({ "object": "response", "status": "completed", "model": "m", "store": store, "output": items });
        let mut events = vec![json!({ "type": "response.created", "response": { "store": store, "model": "m" } })];
        for (index, item) in items.as_array().unwrap().iter().enumerate() {
            events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
        }
        let mut ended = response.clone();
        ended["output"] = json!([]);
        events.push(json!({ "type": "response.completed", "response": ended }));
        let stream: String =
            events.iter().fold(String::new(), |text, event| text + format!("data: {event}\n\n").as_str());
        for body in [response.to_string(), stream] {
            for cut in [usize::MAX, 1, 7] {
                let decoded = decode(FORMAT, body.as_bytes(), cut);
                let history = turn(&decoded);
                let sent = super::body(FORMAT, &history, Some("m"))["input"].as_array().unwrap().clone();
                let (own, lost) = if goes_back {
                    (items.clone(), vec![])
                } else {
                    (json!([anew]), vec!["reasoning at /0", "the id of a call whose reasoning is gone at /0"])
                };
                assert_eq!(json!(sent[..sent.len() - 1]), own, "{store}");
                assert_eq!(losses(FORMAT, &history, Some("m")), lost, "{store}");
                assert!(
                    decoded.parts().iter().any(|part| matches!(part, Part::Reasoning { text, .. } if text == "Hm."))
                );
            }
        }
    }
}

#[test]
fn recorded_turns_go_back_whole() {
    let index = read_json(&fixtures("recorded/index.json"));
    let (mut seen, mut kinds) = (0, std::collections::BTreeSet::new());
    for case in index.as_array().unwrap().iter().filter(|case| case["format"] == FORMAT.as_str()) {
        let bytes = std::fs::read(fixtures("recorded").join(case["file"].as_str().unwrap())).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some(raw) = output(&text, case["stream"] == true) else { continue };
        let items: Vec<Value> = raw.iter().map(|item| serde_json::from_str(item.get()).unwrap()).collect();
        let expected = taken_back(&items);
        for cut in [usize::MAX, 1, 7] {
            let decoded = decode(FORMAT, &bytes, cut);
            for history in [turn(&decoded), restored(&turn(&decoded))] {
                let encoded = FORMAT.encode_messages(&history, decoded.model.as_deref());
                let sent: Vec<Value> = serde_json::from_str(encoded.body["input"].get()).unwrap();
                let (own, results) = sent.split_at(sent.len() - decoded.calls.len());
                assert_eq!(own, expected, "{} cut {cut}", case["id"]);
                for (result, call) in results.iter().zip(&decoded.calls) {
                    assert_eq!(result["call_id"], call.call.id.as_str(), "{}", case["id"]);
                }
                // Byte for byte, except the picture, whose bytes are a separate part.
                for (raw, item) in raw.iter().zip(&items).filter(|(_, item)| expected.contains(item)) {
                    let same = encoded.body["input"].get().contains(raw.get());
                    assert!(same || kind(item) == "image_generation_call", "{} {item}", case["id"]);
                }
                assert_eq!(encoded.losses.is_empty(), expected.len() == items.len(), "{}", case["id"]);
                kinds.extend(items.iter().map(|item| kind(item).to_owned()));
            }
            // Another model gets none of it, and every request is one that the provider reads.
            let other = FORMAT.encode_messages(&turn(&decoded), Some("another"));
            assert!(!other.body["input"].get().contains("encrypted_content"), "{}", case["id"]);
            let sealed = items.iter().any(|item| kind(item) == "reasoning");
            assert!(!sealed || !other.losses.is_empty(), "{}", case["id"]);
        }
        seen += 1;
    }
    assert!(seen >= 20, "{seen}");
    for needed in ["reasoning", "message", "function_call", "web_search_call", "mcp_call"] {
        assert!(kinds.contains(needed), "{needed}");
    }
}

fn completed(output: &Value) -> Vec<u8> {
    json!({ "id": "resp_1", "model": "m", "status": "completed", "output": output }).to_string().into_bytes()
}

fn reasoning(id: &str) -> Value {
    json!({ "type": "reasoning", "id": id, "summary": [{ "type": "summary_text", "text": "Hm." }], "encrypted_content": "x" })
}

fn function_call(id: &str, call_id: &str) -> Value {
    json!({
        "type": "function_call", "id": id, "call_id": call_id, "name": "core__add", "arguments": "{ \"a\": 1 }",
        "status": "completed", "namespace": "math",
    })
}

fn input(history: &[Message]) -> Value {
    body(FORMAT, history, Some("m"))["input"].take()
}

fn parts(output: &Value) -> Vec<Part> {
    decode(FORMAT, &completed(output), usize::MAX).parts()
}

fn result(id: &str) -> Message {
    Message::Result(ResultMessage::new(id, "1"))
}

#[test]
fn reasoning_and_the_items_after_it_need_each_other() {
    let message = json!({
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
        "content": [{ "type": "output_text", "text": "Adding.", "annotations": [], "logprobs": [] }],
    });
    let output = json!([reasoning("rs_1"), message, function_call("fc_1", "call_1")]);
    let whole = parts(&output);
    assert_eq!(whole.len(), 3);
    let answer = json!({ "type": "function_call_output", "call_id": "call_1", "output": "1" });
    let sent = input(&[Message::Assistant(whole.clone()), result("call_1")]);
    assert_eq!(sent, json!([output[0], output[1], output[2], answer]));

    // Without its reasoning an item goes back without the id by which the provider would miss it.
    let history = [Message::Assistant(whole[1..].to_vec()), result("call_1")];
    let sent = input(&history);
    assert_eq!((&sent[0]["id"], &sent[0]["phase"]), (&Value::Null, &json!("commentary")));
    assert_eq!((&sent[1]["id"], &sent[1]["namespace"]), (&Value::Null, &json!("math")));
    let gone = |what: &str| format!("the id of a {what} whose reasoning is gone at /0");
    assert_eq!(losses(FORMAT, &history, Some("m")), [gone("message"), gone("call")]);

    // Without an item after it reasoning does not go back: nothing of the turn is left.
    let history = [Message::user("Hi"), Message::Assistant(whole[..1].to_vec())];
    assert_eq!(input(&history).as_array().unwrap().len(), 1);
    assert_eq!(losses(FORMAT, &history, Some("m")), ["reasoning whose next item is gone at /1"]);

    // An answer that was written again is not the item that the reasoning was for.
    let edited = vec![whole[0].clone(), Part::text("Adding, then.")];
    let sent = input(&[Message::Assistant(edited)]);
    assert_eq!(sent.as_array().unwrap().len(), 1);
    assert_eq!(sent[0]["content"][0]["text"], "Adding, then.");
}

#[test]
fn a_message_that_was_added_to_is_written_anew() {
    let content = json!([
        { "type": "output_text", "text": "One.", "annotations": [{ "type": "url_citation", "url": "https://a", "title": "A" }] },
        { "type": "output_text", "text": "Two.", "annotations": [] },
        { "type": "refusal", "refusal": "No more." },
    ]);
    let output =
        json!([{ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content }]);
    let mut whole = parts(&output);
    assert_eq!(input(&[Message::Assistant(whole.clone())]), output);
    assert_eq!(whole.iter().filter(|part| matches!(part, Part::Citation(_))).count(), 1);
    whole.push(Part::text("Three."));
    let history = [Message::Assistant(whole)];
    let texts: Vec<_> =
        input(&history).as_array().unwrap().iter().map(|item| item["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["One.", "Two.", "No more.", "Three."]);
    assert!(!losses(FORMAT, &history, Some("m")).is_empty());
}

#[test]
fn free_form_calls_are_answered_in_their_own_way() {
    let call =
        json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sql", "input": "SELECT 1" });
    let decoded = decode(FORMAT, &completed(&json!([call])), usize::MAX);
    assert_eq!(decoded.finish, FinishReason::ToolCalls);
    // The gate refuses text that is not an object; the model reads why.
    assert!(!decoded.calls[0].is_executable());
    let answer = json!({ "type": "custom_tool_call_output", "call_id": "call_1", "output": "1" });
    assert_eq!(input(&[Message::Assistant(decoded.parts()), result("call_1")]), json!([call, answer]));
}

#[test]
fn a_picture_is_media_and_goes_back_once() {
    let output = json!([{ "type": "image_generation_call", "id": "ig_1", "status": "completed", "output_format": "webp", "result": "UklGRgAAAABXRUJQVlA4IA==" }]);
    let whole = parts(&output);
    assert_eq!(whole[1], Part::Media(Media::base64("image/webp", "UklGRgAAAABXRUJQVlA4IA==").unwrap()));
    assert_eq!(input(&[Message::Assistant(whole.clone())]), output);
    // Without the picture the call that made it means nothing.
    let history = [Message::Assistant(whole[..1].to_vec())];
    assert_eq!(input(&history), json!([]));
    assert_eq!(losses(FORMAT, &history, Some("m")).len(), 1);
}

#[test]
fn arguments_that_do_not_parse_and_ids_that_changed_are_never_replayed() {
    let mut broken = function_call("fc_1", "call_1");
    broken["arguments"] = "{\"a\": \"\\ud800".into();
    let sent = input(&[Message::Assistant(parts(&json!([broken]))), result("call_1")]);
    assert_eq!((&sent[0]["arguments"], &sent[0]["namespace"]), (&json!("{}"), &json!("math")));

    // Two calls of one id: the second has a new one, in the call and in its result.
    let decoded =
        decode(FORMAT, &completed(&json!([function_call("fc_1", "call_1"), function_call("fc_1", "call_1")])), 7);
    assert_eq!(decoded.calls.len(), 2);
    let fresh = decoded.calls[1].call.id.clone();
    let sent = input(&[Message::Assistant(decoded.parts()), result("call_1"), result(fresh.as_str())]);
    assert_eq!((&sent[1]["call_id"], &sent[3]["call_id"]), (&json!(fresh.as_str()), &json!(fresh.as_str())));
}

#[test]
fn items_that_wait_for_the_client_end_no_turn_well() {
    for kind in WAITING {
        let item = json!({ "type": kind, "id": "x", "call_id": "call_1", "execution": "client" });
        let decoded = decode(FORMAT, &completed(&json!([reasoning("rs_1"), item])), usize::MAX);
        assert!(!decoded.ended_well(), "{kind}");
        let error = decoded.error.as_ref().unwrap();
        assert_eq!((error.code(), error.message.as_deref()), ("unsupported_item", Some(kind)));
        // Nobody answers the item, so it does not go back, and the reasoning before it does not either.
        assert_eq!(input(&[Message::user("Hi"), Message::Assistant(decoded.parts())]).as_array().unwrap().len(), 1);
    }
}

#[test]
fn done_events_decide_over_deltas() {
    let event = |value: Value| format!("data: {value}\n\n");
    let added = json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [] });
    let mut done = added.clone();
    done["content"] = json!([{ "type": "output_text", "text": "Right.", "annotations": [] }]);
    let stream = [
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "reasoning", "id": "rs_1" } }),
        json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "One" }),
        json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "Two" }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": reasoning("rs_1") }),
        json!({ "type": "response.output_item.added", "output_index": 1, "item": added }),
        json!({ "type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Wrong" }),
        json!({ "type": "response.output_item.done", "output_index": 1, "item": done }),
        json!({ "type": "response.completed", "response": { "model": "m", "status": "completed", "output": [] } }),
    ]
    .map(event)
    .concat();
    let mut decoder = FORMAT.decoder();
    let mut shown = String::new();
    for event in decoder.push(stream.as_bytes()) {
        if let DisplayEvent::Reasoning(text) = event {
            shown.push_str(&text);
        }
    }
    let decoded = decoder.finish();
    assert_eq!((shown.as_str(), decoded.text.as_str()), ("One\n\nTwo", "Right."));
    assert_eq!(input(&[Message::Assistant(decoded.parts())]), json!([reasoning("rs_1"), done]));
}

#[test]
fn what_is_carried_is_bounded_and_ends_are_not_invented() {
    let mut large = reasoning("rs_1");
    large["encrypted_content"] = "x".repeat(9 << 20).into();
    let decoded = decode(FORMAT, &completed(&json!([large, function_call("fc_1", "call_1")])), 1 << 16);
    assert_eq!(decoded.error.as_ref().unwrap().code(), "limit_exceeded");
    assert!(!decoded.calls[0].is_executable());

    // Reasoning that began and never ended does not go back.
    let begun = r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1"}}

data: {"type":"response.reasoning_text.delta","output_index":0,"delta":"Hm"}

"#;
    let decoded = decode(FORMAT, begun.as_bytes(), 1);
    assert_eq!(decoded.finish, FinishReason::Truncated);
    assert_eq!(input(&[Message::Assistant(decoded.parts())]), json!([]));
}

#[test]
fn other_formats_turns_are_written_as_items() {
    let call = CallMessage::new("call_1", "core__add", "{}");
    let line = br#"{"model":"m","message":{"content":"Hi","thinking":"Hm"},"done":true}"#;
    let mut turn = decode(Format::Ollama, line, 7).parts();
    turn.push(Part::Call(call));
    let history = [Message::Assistant(turn), result("call_1")];
    let kinds: Vec<_> = input(&history).as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["message", "function_call", "function_call_output"]);
    assert_eq!(losses(FORMAT, &history, Some("m")), ["reasoning at /0"]);
}
