//! Chat Completions and its compatible servers: further members of a message go back with its text and calls.

use serde_json::{Map, Value, json};
use tests::wire::{decode, fixtures, read_json};
use tool_runtime::media::Media;
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::{DisplayEvent, FinishReason, Format, Message};

use super::{body, losses};

const FORMAT: Format = Format::OpenAiChat;

/// Members that a server takes back as they came.
const AS_THEY_CAME: [&str; 4] = ["extra_content", "thought_signature", "annotations", "thinking_blocks"];

/// The message of a recorded response, put together without this crate.
fn message(text: &str, stream: bool) -> Option<Value> {
    if !stream {
        return serde_json::from_str::<Value>(text).ok()?.pointer("/choices/0/message").cloned();
    }
    let mut whole = Map::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("data:")) {
        let Ok(chunk) = serde_json::from_str::<Value>(line) else { continue };
        let Some(delta) = chunk.pointer("/choices/0/delta").and_then(Value::as_object) else { continue };
        for (key, value) in delta.iter().filter(|(_, value)| !value.is_null()) {
            match (key.as_str(), value) {
                ("reasoning_content" | "reasoning", Value::String(more)) => {
                    let before = whole.get(key).and_then(Value::as_str).unwrap_or_default();
                    whole.insert(key.clone(), format!("{before}{more}").into());
                }
                ("reasoning_details", Value::Array(list)) => {
                    let entries = whole.entry(key).or_insert_with(|| json!([])).as_array_mut().unwrap();
                    list.iter().for_each(|entry| merge(entries, entry));
                }
                ("annotations", Value::Array(list)) => {
                    whole.entry(key).or_insert_with(|| json!([])).as_array_mut().unwrap().extend(list.iter().cloned());
                }
                ("tool_calls" | "content" | "role", _) => {}
                _ => {
                    whole.insert(key.clone(), value.clone());
                }
            }
        }
    }
    Some(whole.into())
}

/// As the client of the gateway joins fragments of its list.
fn merge(entries: &mut Vec<Value>, fragment: &Value) {
    let same = |last: &&mut Value| {
        last["type"] == fragment["type"]
            && last["index"] == fragment["index"]
            && fragment["type"] != "reasoning.encrypted"
    };
    let Some(last) = entries.last_mut().filter(same) else { return entries.push(fragment.clone()) };
    for (key, value) in fragment.as_object().unwrap() {
        let before = &mut last[key];
        match (key.as_str(), &before, value) {
            ("text" | "summary", Value::String(text), Value::String(more)) => *before = format!("{text}{more}").into(),
            (_, Value::Null, _) => *before = value.clone(),
            (_, Value::String(text), _) if text.is_empty() => *before = value.clone(),
            _ => {}
        }
    }
}

/// A history after it was saved by a store that reads JSON, and restored.
fn restored(history: &[Message]) -> Vec<Message> {
    let saved: Value = serde_json::from_str(&serde_json::to_string(history).unwrap()).unwrap();
    serde_json::from_value(saved).unwrap()
}

#[test]
fn recorded_turns_go_back_whole() {
    let index = read_json(&fixtures("recorded/index.json"));
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for case in index.as_array().unwrap().iter().filter(|case| case["format"] == FORMAT.as_str()) {
        let bytes = std::fs::read(fixtures("recorded").join(case["file"].as_str().unwrap())).unwrap();
        let Some(came) = message(std::str::from_utf8(&bytes).unwrap(), case["stream"] == true) else { continue };
        for cut in [usize::MAX, 1, 7] {
            let decoded = decode(FORMAT, &bytes, cut);
            let results = decoded.calls.iter().map(|call| ResultMessage::new(call.call.id.clone(), "done"));
            let history: Vec<_> =
                std::iter::once(Message::Assistant(decoded.parts())).chain(results.map(Message::Result)).collect();
            for history in [restored(&history), history] {
                let sent = body(FORMAT, &history, decoded.model.as_deref())["messages"].take();
                let Some(turn) = sent.get(0) else {
                    assert!(decoded.text.is_empty() && decoded.calls.is_empty(), "{}", case["id"]);
                    continue;
                };
                assert_eq!(turn["role"], "assistant");
                for key in ["reasoning_content", "reasoning", "reasoning_details"].iter().chain(&AS_THEY_CAME) {
                    let empty = |value: &Value| {
                        value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
                    };
                    if empty(&came[*key]) {
                        assert!(empty(&turn[*key]), "{} {key}: {}", case["id"], turn[*key]);
                    } else {
                        assert_eq!(turn[*key], came[*key], "{} {key} cut {cut}", case["id"]);
                        *seen.entry((*key).to_owned()).or_default() += 1;
                    }
                }
                if came["content"].is_array() {
                    assert_eq!(turn["content"], came["content"], "{}", case["id"]);
                } else if !decoded.text.is_empty() && turn["content"].is_string() {
                    assert_eq!(turn["content"], decoded.text.as_str(), "{}", case["id"]);
                }
                for (call, came) in turn["tool_calls"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .zip(came["tool_calls"].as_array().into_iter().flatten())
                {
                    assert_eq!(call.get("extra_content"), came.get("extra_content"), "{}", case["id"]);
                }
                // Sources that came next to the message have no place in a request.
                let lost = losses(FORMAT, &history, decoded.model.as_deref());
                let sources = if came["annotations"].is_array() { 0 } else { citations(&history) };
                assert_eq!(lost, vec!["a citation at /0"; sources], "{}", case["id"]);
            }
        }
    }
    for needed in ["reasoning_content", "reasoning", "reasoning_details"] {
        assert!(seen.contains_key(needed), "{needed}: {seen:?}");
    }
}

fn citations(history: &[Message]) -> usize {
    let parts = |message: &Message| match message {
        Message::Assistant(parts) => parts.iter().filter(|part| matches!(part, Part::Citation(_))).count(),
        _ => 0,
    };
    history.iter().map(parts).sum()
}

fn whole(message: &Value) -> Vec<u8> {
    json!({ "model": "m", "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
        .to_string()
        .into_bytes()
}

fn stream(deltas: &[Value]) -> Vec<u8> {
    let chunk =
        |delta: &Value| format!("data: {}\n\n", json!({ "model": "m", "choices": [{ "index": 0, "delta": delta }] }));
    deltas.iter().map(chunk).collect::<String>().into_bytes().into_iter().chain(*b"data: [DONE]\n\n").collect()
}

fn parts(bytes: &[u8]) -> Vec<Part> {
    let decoded = decode(FORMAT, bytes, 7);
    assert!(decoded.ended_well(), "{:?}", decoded.error);
    decoded.parts()
}

/// The first message that is sent for a turn and a result for each of its calls.
fn sent(parts: Vec<Part>) -> Value {
    let results = parts.iter().filter_map(Part::as_call).map(|call| ResultMessage::new(call.id.clone(), "1"));
    let results: Vec<_> = results.map(Message::Result).collect();
    let history: Vec<_> = std::iter::once(Message::Assistant(parts)).chain(results).collect();
    body(FORMAT, &history, Some("m"))["messages"].take()
}

fn call() -> Value {
    json!({ "id": "call_1", "type": "function", "function": { "name": "core__add", "arguments": "{\"a\":1}" } })
}

#[test]
fn reasoning_goes_back_in_the_fields_in_which_it_came() {
    for fields in [&["reasoning_content"][..], &["reasoning"], &["reasoning_content", "reasoning"]] {
        let mut message = json!({ "role": "assistant", "content": null, "tool_calls": [call()] });
        let mut deltas = vec![json!({}), json!({})];
        for field in fields {
            message[*field] = "Let me see.".into();
            (deltas[0][*field], deltas[1][*field]) = ("Let me ".into(), "see.".into());
        }
        let mut last = call();
        last["index"] = 0.into();
        deltas.push(json!({ "tool_calls": [last] }));
        for bytes in [whole(&message), stream(&deltas)] {
            assert_eq!(sent(parts(&bytes))[0], message);
        }
        let mut decoder = FORMAT.decoder();
        let shown: String = decoder
            .push(&stream(&deltas))
            .iter()
            .filter_map(|event| if let DisplayEvent::Reasoning(text) = event { Some(text.as_ref()) } else { None })
            .collect();
        assert_eq!(shown, "Let me see.");
    }
    // A server that thinks may ask for the field of every turn with calls, even if it was empty.
    let message = json!({ "role": "assistant", "content": null, "reasoning_content": "", "tool_calls": [call()] });
    assert_eq!(sent(parts(&whole(&message)))[0], message);
}

#[test]
fn fragments_of_reasoning_details_are_joined() {
    let detail =
        |text: &str, index: i64| json!({ "type": "reasoning.text", "text": text, "format": "f", "index": index });
    let mut signed = detail("", 0);
    signed["signature"] = "c2ln".into();
    let sealed = json!({ "type": "reasoning.encrypted", "data": "eA==", "id": "rs_1", "index": 1 });
    let deltas = [
        json!({ "reasoning": "Let ", "reasoning_details": [detail("Let ", 0)] }),
        json!({ "reasoning": "me.", "reasoning_details": [detail("me.", 0)] }),
        json!({ "reasoning_details": [signed] }),
        json!({ "reasoning_details": [sealed] }),
        json!({ "content": "Yes." }),
    ];
    let joined = json!({ "type": "reasoning.text", "text": "Let me.", "format": "f", "index": 0, "signature": "c2ln" });
    let expected = json!({ "role": "assistant", "content": "Yes.", "reasoning": "Let me.", "reasoning_details": [joined, sealed] });
    assert_eq!(sent(parts(&stream(&deltas)))[0], expected);
    // A value that is not a list of objects is ignored.
    for odd in [json!("x"), json!({}), json!([1, null, "x"]), json!(null)] {
        let message = json!({ "role": "assistant", "content": "Yes.", "reasoning_details": odd });
        assert_eq!(sent(parts(&whole(&message)))[0], json!({ "role": "assistant", "content": "Yes." }));
    }
}

#[test]
fn signatures_annotations_and_audio_go_back() {
    let mut signed = call();
    signed["extra_content"] = json!({ "google": { "thought_signature": "c2ln" } });
    let note =
        json!({ "type": "url_citation", "url_citation": { "url": "https://a", "title": "A", "start_index": 0 } });
    let message = json!({
        "role": "assistant", "content": "Hi", "tool_calls": [signed], "annotations": [note],
        "extra_content": { "google": { "thought": true } }, "audio": { "id": "audio_1", "data": "UklGRiQAAABXQVZFZm10IA==", "transcript": "Hi" },
    });
    let turn = parts(&whole(&message));
    assert!(turn.contains(&Part::Media(Media::base64("audio/wav", "UklGRiQAAABXQVZFZm10IA==").unwrap())));
    let mut expected = message.clone();
    expected["audio"] = json!({ "id": "audio_1" });
    assert_eq!(sent(turn.clone())[0], expected);
    assert_eq!(losses(FORMAT, &[Message::Assistant(turn.clone())], Some("m")), [""; 0]);
    // Another format gets text and call, and reports the parts that it leaves out.
    let lost = losses(Format::Ollama, &[Message::Assistant(turn)], Some("m"));
    assert!(lost.len() >= 3, "{lost:?}");

    let picture = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0=" } });
    let message = json!({ "role": "assistant", "content": "Here.", "images": [picture] });
    assert_eq!(sent(parts(&whole(&message)))[0], message);
}

#[test]
fn thinking_within_the_content_goes_back_within_it() {
    let thought = |text: &str| json!({ "type": "thinking", "thinking": [{ "type": "text", "text": text }] });
    let text = json!({ "type": "text", "text": "4" });
    let reference = json!({ "type": "reference", "reference_ids": [1] });
    let message = json!({ "role": "assistant", "content": [thought("2 + 2."), text, reference] });
    assert_eq!(sent(parts(&whole(&message)))[0], message);
    let deltas = [
        json!({ "content": [thought("2 +")] }),
        json!({ "content": [thought(" 2.")] }),
        json!({ "content": [text] }),
        json!({ "content": [reference] }),
        json!({ "content": "" }),
    ];
    assert_eq!(sent(parts(&stream(&deltas)))[0], message);
}

#[test]
fn calls_go_back_in_the_shape_in_which_they_came() {
    let legacy =
        json!({ "role": "assistant", "content": null, "function_call": { "name": "core__add", "arguments": "{}" } });
    let answer = json!({ "role": "function", "name": "core__add", "content": "1" });
    let fragment = |arguments: &str| json!({ "function_call": { "name": "core__add", "arguments": arguments } });
    for bytes in [whole(&legacy), stream(&[fragment("{"), fragment("}")])] {
        assert_eq!(sent(parts(&bytes)), json!([legacy, answer]));
    }
    let custom = json!({ "id": "call_1", "type": "custom", "custom": { "name": "sql", "input": "SELECT 1" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [custom] });
    let answer = json!({ "role": "tool", "tool_call_id": "call_1", "content": "1" });
    let first = json!({ "index": 0, "id": "call_1", "type": "custom", "custom": { "name": "sql", "input": "SELECT" } });
    let second = json!({ "index": 0, "custom": { "input": " 1" } });
    for bytes in [whole(&message), stream(&[json!({ "tool_calls": [first] }), json!({ "tool_calls": [second] })])] {
        let decoded = decode(FORMAT, &bytes, 7);
        assert_eq!(decoded.finish, FinishReason::ToolCalls);
        assert!(!decoded.calls[0].is_executable());
        assert_eq!(sent(decoded.parts()), json!([message, answer]));
    }
}

#[test]
fn refusals_and_text_around_calls_are_one_message() {
    let refusal = json!({ "role": "assistant", "content": null, "refusal": "No." });
    let turn = decode(FORMAT, &whole(&refusal), 1).parts();
    assert_eq!(sent(turn)[0], refusal);
    let mut first = call();
    first["index"] = 0.into();
    let deltas = [json!({ "content": "Let " }), json!({ "tool_calls": [first] }), json!({ "content": "me." })];
    assert_eq!(sent(parts(&stream(&deltas)))[0]["content"], "Let me.");
    // Other formats' texts stay apart.
    assert_eq!(sent(vec![Part::text("One."), Part::text("Two.")])[0]["content"], "One.\n\nTwo.");
}

#[test]
fn messages_are_never_empty_and_what_is_carried_is_bounded() {
    let only = json!({ "role": "assistant", "content": "", "reasoning_content": "Hm" });
    let turn = Message::Assistant(parts(&whole(&only)));
    let history = [Message::user("Hi"), turn];
    assert_eq!(body(FORMAT, &history, Some("m"))["messages"].as_array().unwrap().len(), 1);
    assert_eq!(losses(FORMAT, &history, Some("m")), ["reasoning without an answer at /1"]);
    assert_eq!(losses(FORMAT, &history, Some("another")), ["reasoning at /1"]);

    let sealed = json!([{ "type": "reasoning.encrypted", "data": "x".repeat(9 << 20) }]);
    let message = json!({ "role": "assistant", "tool_calls": [call()], "reasoning_details": sealed });
    let decoded = decode(FORMAT, &whole(&message), 1 << 16);
    assert_eq!(decoded.error.as_ref().unwrap().code(), "limit_exceeded");
    assert!(!decoded.calls[0].is_executable());
}

#[test]
fn items_of_responses_are_written_as_a_message() {
    let output = json!([
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" },
        { "type": "message", "id": "m", "role": "assistant", "content": [{ "type": "output_text", "text": "Hi" }] },
    ]);
    let response = json!({ "model": "m", "status": "completed", "output": output }).to_string();
    let mut turn = decode(Format::OpenAiResponses, response.as_bytes(), 7).parts();
    turn.push(Part::Call(CallMessage::new("call_1", "core__add", "{\"a\":1}")));
    assert_eq!(sent(turn.clone())[0], json!({ "role": "assistant", "content": "Hi", "tool_calls": [call()] }));
    assert_eq!(losses(FORMAT, &[Message::Assistant(turn)], Some("m")).len(), 2);
}

/// OpenAI refuses ids of more than 40 characters, and `LiteLLM` wants its own back, however long they are.
#[test]
fn long_ids_of_another_format_are_shortened_and_those_of_the_server_stay() {
    let long = format!("call_{}", "a".repeat(60));
    let ids = |history: &[Message]| {
        let body = body(Format::OpenAiChat, history, Some("m"));
        let messages = body["messages"].as_array().unwrap().clone();
        let call = messages[0]["tool_calls"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(messages[1]["tool_call_id"], call.as_str(), "the result has the same id");
        call
    };
    let turn = |format: Format, body: Value| {
        let decoded = decode(format, body.to_string().as_bytes(), usize::MAX);
        let result = ResultMessage::new(decoded.calls[0].call.id.clone(), "Done.");
        [Message::Assistant(decoded.parts()), Message::Result(result)]
    };
    let responses = |id: &str| {
        let call = json!({ "type": "function_call", "id": "fc", "call_id": id, "name": "a", "arguments": "{}" });
        turn(Format::OpenAiResponses, json!({ "object": "response", "status": "completed", "output": [call] }))
    };
    let shortened = ids(&responses(&long));
    assert!(shortened.len() <= 40 && shortened != long, "{shortened}");
    assert_eq!(ids(&responses(&long)), shortened, "in every request");
    assert_eq!(ids(&responses("call_1")), "call_1");
    let call = json!({ "id": long, "type": "function", "function": { "name": "a", "arguments": "{}" } });
    let message = json!({ "message": { "tool_calls": [call] }, "finish_reason": "tool_calls" });
    assert_eq!(ids(&turn(Format::OpenAiChat, json!({ "choices": [message] }))), long);
}

/// Perplexity lists the addresses of its sources next to the message, and so does Grok; newer answers of Perplexity
/// have their titles too.
#[test]
fn sources_beside_the_message_are_citations() {
    let urls = json!(["https://a.example", 5, "", "https://b.example"]);
    let results = json!([{ "title": "A", "url": "https://a.example", "snippet": "said" }]);
    let plain = vec![json!({ "url": "https://a.example" }), json!({ "url": "https://b.example" })];
    let titled = vec![json!({ "title": "A", "url": "https://a.example", "quote": "said" })];
    for (beside, expected) in [
        (json!({ "citations": urls }), plain.clone()),
        (json!({ "citations": urls, "search_results": results }), titled),
        (json!({ "citations": urls, "search_results": [] }), plain),
        (json!({ "citations": "https://a.example" }), vec![]),
        (json!({ "citations": null }), vec![]),
    ] {
        let with = |mut document: Value| {
            document.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            document
        };
        let whole =
            with(json!({ "choices": [{ "message": { "content": "Hi" }, "finish_reason": "stop" }] })).to_string();
        let first = with(json!({ "choices": [{ "index": 0, "delta": { "content": "Hi" } }] }));
        let last = with(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }));
        let stream = format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n");
        for body in [whole, stream] {
            for cut in [usize::MAX, 1, 7] {
                let parts = decode(FORMAT, body.as_bytes(), cut).parts();
                let cited: Vec<Value> = parts
                    .iter()
                    .filter_map(
                        |part| if let Part::Citation(cited) = part { serde_json::to_value(cited).ok() } else { None },
                    )
                    .collect();
                assert_eq!(cited, expected, "{beside}");
            }
        }
    }
}

/// A stream of one delta with calls after the other.
fn calls(deltas: &[Value]) -> Vec<(String, String)> {
    let mut bytes: String = deltas
        .iter()
        .map(|call| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})))
        .collect::<Vec<_>>()
        .concat();
    bytes.push_str(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    let decoded = decode(FORMAT, bytes.as_bytes(), 7);
    let ids: std::collections::HashSet<_> = decoded.calls.iter().map(|call| call.call.id.clone()).collect();
    assert_eq!(ids.len(), decoded.calls.len(), "two calls never share an id");
    let call = |call: &tool_runtime::wire::DecodedCall| {
        assert!(call.is_executable(), "{call:?}");
        (call.call.name.clone(), call.call.arguments().to_owned())
    };
    decoded.calls.iter().map(call).collect()
}

#[test]
fn calls_that_share_an_id_or_an_index_are_calls_of_their_own() {
    let delta = |index: Option<u32>, id: Option<&str>, name: Option<&str>, arguments: &str| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    let (one, two) = (r#"{"a":1}"#, r#"{"a":2}"#);
    let both = [("f".to_owned(), one.to_owned()), ("f".to_owned(), two.to_owned())];
    let f = Some("f");
    // Whole calls, in pieces, and first named and then filled.
    assert_eq!(calls(&[delta(Some(0), Some("x"), f, one), delta(Some(0), Some("x"), f, two)]), both);
    assert_eq!(calls(&[delta(Some(0), Some("x"), f, one), delta(Some(1), Some("x"), f, two)]), both);
    assert_eq!(calls(&[delta(None, Some("x"), f, one), delta(None, Some("x"), f, two)]), both);
    assert_eq!(calls(&[delta(Some(0), None, f, one), delta(Some(0), None, f, two)]), both);
    for (id, index) in [(Some("x"), 0), (Some("x"), 1), (None, 0)] {
        let pieces = |index: u32, text: &str| {
            let (start, end) = text.split_at(3);
            [delta(Some(index), id, f, ""), delta(Some(index), None, None, start), delta(Some(index), None, None, end)]
        };
        assert_eq!(calls(&[pieces(0, one), pieces(index, two)].concat()), both, "{id:?} {index}");
        let named: Vec<_> = [pieces(0, one), pieces(index, two)].concat();
        let opened = [&named[0..1], &named[3..4], &named[1..3], &named[4..6]].concat();
        assert_eq!(calls(&opened), both, "opened together: {id:?} {index}");
    }
    // Sent twice, it is one call.
    let again = [delta(Some(0), Some("x"), f, one), delta(Some(0), Some("x"), f, one)];
    assert_eq!(calls(&again), both[..1]);
    let (start, end) = one.split_at(3);
    let again =
        [delta(Some(0), Some("x"), f, one), delta(Some(0), Some("x"), f, start), delta(Some(0), Some("x"), None, end)];
    assert_eq!(calls(&again), both[..1]);
    // A name that is repeated with each piece begins nothing.
    let repeated =
        [delta(Some(0), Some("x"), f, start), delta(Some(0), Some("x"), f, end), delta(Some(0), Some("x"), f, "")];
    assert_eq!(calls(&repeated), both[..1]);
}

#[test]
fn two_objects_of_one_call_stay_unreadable() {
    let delta = |name: Option<&str>, arguments: &str| {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, "id": "x", "function": {"name": name, "arguments": arguments}}]}}]})
    };
    let bytes = format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", delta(Some("f"), "{}"), delta(None, "{\"a\":2}"));
    let decoded = decode(FORMAT, bytes.as_bytes(), usize::MAX);
    assert!(decoded.calls.len() == 1 && !decoded.calls[0].is_executable(), "{decoded:?}");
}

#[test]
fn arguments_go_back_as_the_model_wrote_them() {
    let written = "{\"timezone\": \"UTC\",\n \"at\": [1, 2]}";
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": written}}]});
    let bytes = json!({"model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]});
    let turn = [Message::Assistant(decode(FORMAT, bytes.to_string().as_bytes(), usize::MAX).parts())];
    let saved: Vec<Message> = serde_json::from_str(&serde_json::to_string(&turn).unwrap()).unwrap();
    let sent = body(FORMAT, &saved, Some("m"));
    assert_eq!(sent["messages"][0]["tool_calls"][0]["function"]["arguments"], written);
}

#[test]
fn members_that_no_one_knows_go_back() {
    let members = json!({"reasoning_text": "Let me see.", "reasoning_opaque": "b3BhcXVl", "odd": {"a": [1.0]}});
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "odd": "call"});
    let mut message = json!({"role": "assistant", "content": "Yes.", "tool_calls": [call], "null": null});
    message.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let whole = json!({"model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]});
    let deltas = [
        json!({"role": "assistant", "content": "", "reasoning_text": "Let me "}),
        json!({"reasoning_text": "see.", "content": "Yes.", "null": null}),
        json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "odd": "call",
            "function": {"name": "f", "arguments": "{}"}}], "odd": {"a": [1.0]}}),
        json!({"reasoning_opaque": "b3BhcXVl"}),
    ];
    let frame =
        |delta: &Value| format!("data: {}\n\n", json!({"model": "m", "choices": [{"index": 0, "delta": delta}]}));
    let mut stream: String = deltas.iter().map(frame).collect();
    stream.push_str(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    for bytes in [whole.to_string(), stream] {
        let turn = [Message::Assistant(decode(FORMAT, bytes.as_bytes(), 7).parts())];
        let sent = body(FORMAT, &turn, Some("m"))["messages"][0].clone();
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(&sent[name], value, "{sent}");
        }
        assert_eq!((&sent["tool_calls"][0]["odd"], sent.get("null")), (&json!("call"), None), "{sent}");
        assert_eq!(sent["role"], "assistant");
        assert!(!body(FORMAT, &turn, Some("another")).to_string().contains("odd"), "they are the model's");
    }
}
