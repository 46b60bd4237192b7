//! Gemini: every part of a recorded turn is in the next request as it came.

use serde_json::{Value, json};
use tests::wire::{decode, fixtures, read_json};
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::{Decoded, Format, Message};

use super::{body, losses};

/// The turn, a result for each of its calls, saved and restored.
fn history(decoded: &Decoded) -> Vec<Message> {
    let results = decoded.calls.iter().map(|call| Message::Result(ResultMessage::new(call.call.id.clone(), "done")));
    let mut history = vec![Message::user("Hi"), Message::Assistant(decoded.parts())];
    history.extend(results);
    serde_json::from_value(serde_json::to_value(&history).unwrap()).unwrap()
}

/// The parts of a response's first candidate, in all its chunks.
fn parts(body: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(body).unwrap();
    let chunks: Vec<Value> = match serde_json::from_str(text) {
        Ok(Value::Array(chunks)) => chunks,
        Ok(chunk) => vec![chunk],
        Err(_) => text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect(),
    };
    let of_chunk = |chunk: &Value| chunk["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default();
    chunks.iter().flat_map(of_chunk).collect()
}

/// Unsigned text, and unsigned thoughts, are joined with those before them; everything else stays as it came.
fn joined(parts: Vec<Value>) -> Vec<Value> {
    let plain = |part: &Value| part["text"].is_string() && part.get("thoughtSignature").is_none();
    let mut joined: Vec<Value> = Vec::new();
    for part in parts.into_iter().filter(|part| !(plain(part) && part["text"] == "")) {
        match joined.last_mut().filter(|last| plain(last) && plain(&part) && last["thought"] == part["thought"]) {
            Some(last) => {
                last["text"] = [&last["text"], &part["text"]].map(|text| text.as_str().unwrap()).concat().into();
            }
            None => joined.push(part),
        }
    }
    joined
}

#[test]
fn recorded_turns_go_back_as_they_came() {
    let folder = fixtures("recorded");
    let index = read_json(&folder.join("index.json"));
    let mut signed = 0;
    for case in index.as_array().unwrap().iter().filter(|case| case["format"] == "gemini") {
        let bytes = std::fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        let mut expected = joined(parts(&bytes));
        if case["tags"].as_array().unwrap().contains(&json!("partial_args")) {
            let calls = case["expected"]["calls"].as_array().unwrap().iter();
            let whole =
                calls.map(|call| json!({ "functionCall": { "name": call["name"], "args": call["arguments"] } }));
            let signature = expected[0]["thoughtSignature"].take();
            expected = whole.collect();
            expected[0]["thoughtSignature"] = signature;
        }
        for cut in [usize::MAX, 1, 7] {
            let decoded = decode(Format::Gemini, &bytes, cut);
            let history = history(&decoded);
            let sent = body(Format::Gemini, &history, decoded.model.as_deref());
            let empty = json!([]);
            let model = sent["contents"].as_array().unwrap().iter().find(|content| content["role"] == "model");
            let got = model.map_or(&empty, |content| &content["parts"]);
            assert_eq!(got, &Value::from(expected.clone()), "{} cut {cut}", case["id"]);
            assert_eq!(losses(Format::Gemini, &history, decoded.model.as_deref()), [""; 0], "{}", case["id"]);
            let signatures = expected.iter().filter(|part| part.get("thoughtSignature").is_some()).count();
            assert_eq!(Value::from(signatures), case["expected"]["signatures"], "{}", case["id"]);
            signed += signatures;
            // Nothing of it goes to another model or format.
            let another = decoded.model.as_ref().map(|_| (Format::Gemini, Some("another")));
            for (format, model) in another.into_iter().chain([(Format::Anthropic, None)]) {
                let other = body(format, &history, model).to_string();
                assert!(!other.contains("ignature") && !other.contains("\"thought\""), "{other}");
                let told = losses(format, &history, model).len();
                assert!(told >= signatures, "{} {format}: {told} losses", case["id"]);
            }
        }
    }
    assert!(signed > 30, "{signed}");
}

/// A turn of these parts, in one chunk each, sent back.
fn round(parts: &[Value], model: &str) -> (Vec<Part>, Value, Vec<String>) {
    let last = parts.len() - 1;
    let chunk = |(at, part): (usize, &Value)| {
        let mut candidate = json!({ "content": { "parts": [part] } });
        if at == last {
            candidate["finishReason"] = "STOP".into();
        }
        format!("data: {}\n\n", json!({ "candidates": [candidate], "modelVersion": model }))
    };
    let stream: String = parts.iter().enumerate().map(chunk).collect();
    let decoded = decode(Format::Gemini, stream.as_bytes(), 7);
    assert!(decoded.ended_well(), "{:?}", decoded.error);
    let history = history(&decoded);
    let sent = body(Format::Gemini, &history, Some(model));
    (decoded.parts(), sent["contents"][1]["parts"].clone(), losses(Format::Gemini, &history, Some(model)))
}

#[test]
fn signed_parts_are_not_joined_with_others() {
    let turn = [
        json!({ "text": "a", "thought": true }),
        json!({ "text": "b", "thought": true, "thoughtSignature": "1" }),
        json!({ "text": "c", "thought": true }),
        json!({ "text": "d" }),
        json!({ "text": "e", "thoughtSignature": "2", "partMetadata": { "k": 1.50 } }),
        json!({ "text": "f" }),
        json!({ "text": "", "thoughtSignature": "3" }),
        json!({ "thoughtSignature": "4" }),
        json!({ "executableCode": { "language": "PYTHON", "code": "1" }, "thoughtSignature": "5" }),
        json!({ "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "1" } }),
        json!({ "toolCall": { "id": "s", "toolType": "GOOGLE_SEARCH" } }),
        json!({ "functionCall": { "id": "c1", "name": "x", "args": { "n": 1.50 } }, "thoughtSignature": "6" }),
        json!({ "functionCall": { "name": "y", "args": {} } }),
        json!({ "text": "g", "thoughtSignature": "7" }),
    ];
    let (parts, sent, told) = round(&turn, "gemini-3-pro");
    assert_eq!((sent, told), (Value::from(turn.to_vec()), Vec::new()));
    let text: String = parts.iter().filter_map(Part::as_text).collect();
    let thoughts: String = parts
        .iter()
        .filter_map(|part| if let Part::Reasoning { text, .. } = part { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!((text.as_str(), thoughts.as_str()), ("defg", "abc"));
}

#[test]
fn pictures_of_the_model_go_back_with_their_signature() {
    let picture = json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" }, "thoughtSignature": "1" });
    let plain = json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" } });
    let code = json!({ "executableCode": { "code": "1" } });
    let turn = [json!({ "text": "Here:" }), picture.clone(), plain.clone(), code.clone(), picture];
    let (parts, sent, told) = round(&turn, "gemini-3-pro-image");
    assert_eq!((sent, told), (Value::from(turn.to_vec()), Vec::new()));
    assert_eq!(parts.iter().filter(|part| matches!(part, Part::Media(_))).count(), 3);
    // Pictures of another model are not Gemini's.
    let mut foreign: Vec<Part> = parts.into_iter().filter(|part| matches!(part, Part::Media(_))).take(1).collect();
    foreign.push(Part::text("."));
    let turn = [Message::Assistant(foreign)];
    assert_eq!(body(Format::Gemini, &turn, None)["contents"][0]["parts"], json!([{ "text": "." }]));
    assert_eq!(losses(Format::Gemini, &turn, None), ["media that the model made at /0"]);
}

#[test]
fn sources_are_citations() {
    let chunk = |text: &str, sources: &Value, word: &str| {
        let grounding = json!({ "groundingChunks": sources, "webSearchQueries": ["x"] });
        json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": word,
            "groundingMetadata": grounding }] })
    };
    let (first, second) = (
        json!({ "web": { "uri": "https://a.example", "title": "A" } }),
        json!({ "retrievedContext": { "title": "B", "text": "said" } }),
    );
    let stream = json!([chunk("One", &json!([first]), ""), chunk(" two.", &json!([first, second, {}]), "STOP")]);
    let decoded = decode(Format::Gemini, stream.to_string().as_bytes(), 7);
    let parts = serde_json::to_value(decoded.parts()).unwrap();
    let cited = [json!({ "title": "A", "url": "https://a.example" }), json!({ "title": "B", "quote": "said" })];
    let expected = json!([{ "text": { "text": "One" } }, { "citation": cited[0] }, { "text": { "text": " two." } },
        { "citation": cited[1] }]);
    assert_eq!(parts, expected);
}

/// Sources of quotations and of pictures, which are next to the content and stay out of the next request.
#[test]
fn quotations_have_their_sources() {
    let quoted = |uri: &str| json!({ "startIndex": 1, "endIndex": 9, "uri": uri, "license": "" });
    let page = json!({ "image": { "sourceUri": "https://p.example", "imageUri": "https://i.example", "title": "P" } });
    for key in ["citationSources", "citations"] {
        let document = json!({ "candidates": [{ "content": { "parts": [{ "text": "One" }], "role": "model" },
            "finishReason": "STOP", "groundingMetadata": { "groundingChunks": [page] },
            "citationMetadata": { key: [quoted("https://q.example"), {}, quoted("https://q.example")] } }] });
        for cut in [usize::MAX, 1, 7] {
            let parts = decode(Format::Gemini, document.to_string().as_bytes(), cut).parts();
            let expected = json!([{ "text": { "text": "One" } },
                { "citation": { "title": "P", "url": "https://p.example" } },
                { "citation": { "url": "https://q.example" } }]);
            assert_eq!(serde_json::to_value(&parts).unwrap(), expected);
            let sent = body(Format::Gemini, &[Message::Assistant(parts)], None)["contents"][0]["parts"].clone();
            assert_eq!(sent, json!([{ "text": "One" }]));
        }
    }
}

#[test]
fn calls_of_other_models_get_past_the_check_of_signatures() {
    let call = |id: &str| Part::Call(CallMessage::new(id, "x", "{}"));
    let turn = vec![Part::reasoning("Hm."), call("a"), call("b")];
    let sent = |model| body(Format::Gemini, &[Message::Assistant(turn.clone())], model)["contents"][0]["parts"].clone();
    let plain = |id: &str| json!({ "functionCall": { "id": id, "name": "x", "args": {} } });
    let mut first = plain("a");
    for model in [None, Some("gemini-2.5-pro"), Some("models/gemini-2.0-flash"), Some("gemma-3"), Some("m")] {
        assert_eq!(sent(model), json!([first, plain("b")]), "{model:?}");
    }
    first["thoughtSignature"] = "skip_thought_signature_validator".into();
    for model in ["gemini-3-pro-preview", "gemini-3.1-flash", "publishers/google/models/gemini-3-pro", "gemini-10"] {
        assert_eq!(sent(Some(model)), json!([first, plain("b")]), "{model}");
    }
    assert_eq!(losses(Format::Gemini, &[Message::Assistant(turn)], None), ["reasoning at /0"]);
}

#[test]
fn what_is_carried_is_bounded() {
    let part = json!({ "text": "a", "thoughtSignature": "x".repeat(100) });
    let chunk = json!({ "candidates": [{ "content": { "parts": [part] } }] });
    let stream = format!("data: {chunk}\n\n").repeat(20);
    for cut in [usize::MAX, 1, 7] {
        let mut decoder = Format::Gemini.decoder().with_max_provider_state_bytes(1000);
        stream.as_bytes().chunks(cut).for_each(|piece| drop(decoder.push(piece)));
        let error = decoder.finish().error.unwrap();
        assert_eq!(error.code(), "limit_exceeded");
    }
}

/// The provider state of a call need not contain a signature.
#[test]
fn a_first_call_that_came_without_a_signature_gets_past_the_check() {
    for (more, expected) in [
        (json!({ "later": 1 }), "skip_thought_signature_validator"),
        (json!({ "later": 1, "thoughtSignature": "s" }), "s"),
    ] {
        let mut part = json!({ "functionCall": { "id": "a", "name": "x", "args": {} } });
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let document = json!({ "candidates": [{ "content": { "parts": [part] }, "finishReason": "STOP" }] });
        let turn = [Message::Assistant(decode(Format::Gemini, document.to_string().as_bytes(), 7).parts())];
        let sent = body(Format::Gemini, &turn, Some("gemini-3-pro"))["contents"][0]["parts"][0].clone();
        assert_eq!((&sent["thoughtSignature"], &sent["later"]), (&json!(expected), &json!(1)), "{more}");
    }
}

#[test]
fn members_of_a_call_that_no_one_knows_go_back_inside_it() {
    let part = json!({"functionCall": {"id": "c1", "name": "a__b", "args": {"x": 1}, "odd": {"deep": [1.0]}, "more": "m"},
        "thoughtSignature": "c2ln", "beside": 2});
    let unsigned = json!({"functionCall": {"name": "a__b", "args": {}, "odd": true}});
    let bytes = json!({"modelVersion": "m", "candidates": [{"finishReason": "STOP",
        "content": {"role": "model", "parts": [part, unsigned]}}]});
    let turn = [Message::Assistant(decode(Format::Gemini, bytes.to_string().as_bytes(), 7).parts())];
    let sent = body(Format::Gemini, &turn, Some("m"));
    assert_eq!(sent["contents"][0]["parts"], json!([part, unsigned]));
    assert!(!body(Format::Gemini, &turn, Some("another")).to_string().contains("odd"));
}
