//! The wire fixtures, and the transcripts of real servers, through every format and in every cut.

#![allow(clippy::unwrap_used)] // A test that cannot read its fixture has nothing to say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tool_runtime::wire::history::{CallMessage, Message, ResultMessage};
use tool_runtime::wire::{DecodeOptions, Decoded, EncodeOptions, Format, ToolChoice, WireTool, http_record, strict};

fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder)
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn decode(format: Format, bytes: &[u8], cut: usize) -> Decoded {
    let mut decoder = format.decoder(DecodeOptions::default()).unwrap();
    for piece in bytes.chunks(cut) {
        decoder.push(piece);
    }
    decoder.finish()
}

/// JSON as values: numbers by what they mean, key order free.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// The decode result with generated ids checked for being fresh and written as null.
fn result(decoded: &Decoded) -> Value {
    let mut value = serde_json::to_value(decoded).unwrap();
    let mut ids = BTreeSet::new();
    for call in value["calls"].as_array_mut().unwrap() {
        let id = call["id"].as_str().unwrap().to_owned();
        assert!(!id.is_empty() && ids.insert(id.clone()), "ids are unique");
        if call["id_source"] == "generated" {
            assert!(id.len() <= 40 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
            call["id"] = Value::Null;
        }
    }
    value
}

fn cases(kind: &str) -> Vec<(Format, Value)> {
    let index = read_json(&fixtures("wire").join("index.json"));
    let cases = index["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == kind);
    cases.filter_map(|case| Some((case["format"].as_str()?.parse().ok()?, case.clone()))).collect()
}

/// Compares each case and reports all that differ.
fn each_case(kind: &str, run: impl Fn(Format, &Value) -> Vec<(String, Value, Value)>) {
    let cases = cases(kind);
    assert!(!cases.is_empty());
    let mut wrong = Vec::new();
    for (format, case) in &cases {
        for (how, got, expected) in run(*format, case) {
            if !same(&got, &expected) {
                wrong.push(format!("{} {how}\n  got      {got}\n  expected {expected}", case["id"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn input(case: &Value) -> Value {
    read_json(&fixtures("wire").join(case["input"].as_str().unwrap()))
}

/// The input as text: order of keys and digits as the file has them.
fn raw(case: &Value) -> Box<serde_json::value::RawValue> {
    serde_json::from_slice(&std::fs::read(fixtures("wire").join(case["input"].as_str().unwrap())).unwrap()).unwrap()
}

fn expected(case: &Value) -> Value {
    read_json(&fixtures("wire").join(case["expected_file"].as_str().unwrap()))
}

#[test]
fn streams_decode_the_same_in_every_cut() {
    each_case("stream", |format, case| {
        let bytes = std::fs::read(fixtures("wire").join(case["input"].as_str().unwrap())).unwrap();
        let cuts = [usize::MAX, 1, 7, 64];
        cuts.map(|cut| (format!("cut {cut}"), result(&decode(format, &bytes, cut)), case["expected"].clone())).into()
    });
}

#[test]
fn no_prefix_of_a_stream_panics_or_runs_a_call_it_did_not_finish() {
    for (format, case) in cases("stream") {
        let bytes = std::fs::read(fixtures("wire").join(case["input"].as_str().unwrap())).unwrap();
        let whole = decode(format, &bytes, usize::MAX);
        for end in 0..bytes.len() {
            let part = decode(format, &bytes[..end], usize::MAX);
            for call in part.calls.iter().filter(|call| call.executable) {
                let known = whole.calls.iter().any(|other| {
                    other.call.name == call.call.name && other.call.arguments.as_str() == call.call.arguments.as_str()
                });
                assert!(known, "{} at {end}", case["id"]);
            }
        }
    }
}

#[test]
fn requests() {
    #[derive(serde::Deserialize)]
    struct Input<'a> {
        #[serde(borrow)]
        tools: Vec<Tool<'a>>,
        tool_choice: Option<Value>,
        parallel: Option<bool>,
        #[serde(default)]
        strict: bool,
    }
    #[derive(serde::Deserialize)]
    struct Tool<'a> {
        name: String,
        description: String,
        #[serde(borrow)]
        input_schema: &'a serde_json::value::RawValue,
    }
    each_case("request", |format, case| {
        let raw = raw(case);
        let input: Input<'_> = serde_json::from_str(raw.get()).unwrap();
        let mut options = EncodeOptions::default().with_strict(input.strict);
        options.parallel = input.parallel;
        options.choice = input.tool_choice.map(|choice| match choice.as_str() {
            Some("auto") => ToolChoice::Auto,
            Some("required") => ToolChoice::Required,
            Some("none") => ToolChoice::None,
            _ => ToolChoice::Named(choice["name"].as_str().unwrap().to_owned()),
        });
        let tools =
            input.tools.iter().map(|tool| WireTool::new(&tool.name, &tool.description, tool.input_schema.get()));
        let got = match format.encode_tools(tools, &options) {
            Ok(encoded) => {
                assert_eq!(encoded.names.len(), input.tools.len());
                Value::Object(encoded.body)
            }
            Err(error) => error.to_json(),
        };
        vec![(String::new(), got, expected(case))]
    });
}

#[test]
fn results() {
    each_case("result", |format, case| {
        let input = input(case);
        let mut history = Vec::new();
        let listed = input["calls"].as_array().unwrap();
        let arguments = |call: &Value| match &call["arguments"] {
            Value::Null => "not json".to_owned(),
            object => object.to_string(),
        };
        let name = |call: &Value| call["name"].as_str().unwrap().to_owned();
        let id = |call: &Value| call["id"].as_str().unwrap().to_owned();
        let calls =
            listed.iter().map(|call| CallMessage::new(id(call).as_str(), name(call), &arguments(call))).collect();
        let text = input["text"].as_str().unwrap_or_default().to_owned();
        history.push(Message::Assistant { text, calls });
        // M1 orders the results, however they came.
        for call in listed.iter().rev() {
            let content = call["content"].as_str().unwrap();
            let failed = call["is_error"].as_bool().unwrap_or(false);
            history.push(Message::Result(ResultMessage::new(id(call).as_str(), content, failed)));
        }
        if let Some(text) = input["user_text_after"].as_str() {
            history.insert(1, Message::User(text.to_owned()));
        }
        vec![(String::new(), Value::Object(format.encode_messages(&history)), expected(case))]
    });
}

#[test]
fn strict_nulls() {
    each_case("strict_null", |_, case| {
        let input = input(case);
        let arguments = input["arguments"].to_string();
        let less = strict::remove_nulls(&input["input_schema"].to_string(), &arguments).into_owned();
        let got = json!({ "arguments": serde_json::from_str::<Value>(&less).unwrap() });
        vec![(String::new(), got, expected(case))]
    });
}

#[test]
fn transcripts_decode_to_their_index() {
    let index = read_json(&fixtures("transcripts").join("index.json"));
    let mut seen = 0;
    for case in index.as_array().unwrap() {
        let format = match case["api"].as_str().unwrap() {
            "chat" => "openai_chat",
            "messages" => "anthropic",
            _ => "openai_responses",
        };
        let Ok(format) = format.parse::<Format>() else { continue };
        seen += 1;
        let id = case["id"].as_str().unwrap();
        let bytes = std::fs::read(fixtures("transcripts").join(case["response"].as_str().unwrap())).unwrap();
        let record = http_record::parse(&bytes).unwrap();
        assert_eq!(u64::from(record.status.unwrap()), case["status"].as_u64().unwrap(), "{id}");
        assert!(record.complete, "{id}");
        let decoded = decode(format, &record.body, usize::MAX);
        assert_eq!(result(&decoded), result(&decode(format, &record.body, 1)), "{id}");
        let got: Vec<Value> = decoded
            .calls
            .iter()
            .map(|call| json!([call.call.id, call.call.name, call.call.arguments.as_str()]))
            .collect();
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
        let expected = case["calls"].as_array().unwrap();
        assert_eq!(got.len(), expected.len(), "{id}");
        for (got, expected) in got.iter().zip(expected) {
            assert_eq!([&got[0], &got[1]], [&expected["id"], &expected["name"]], "{id}");
            let (got, expected) = (got[2].as_str().unwrap(), expected["arguments"].as_str().unwrap());
            assert!(got == expected || read(got) == read(expected), "{id}: {got} {expected}");
        }
        assert_eq!(decoded.text, case["text"].as_str().unwrap_or_default(), "{id}");
        let finish = case["finish"].as_str();
        assert_eq!(decoded.error.is_some(), !case["error"].is_null(), "{id}: {:?}", decoded.error);
        if let Some(message) = case["error"]["message"].as_str() {
            assert_eq!(decoded.error.as_ref().unwrap().message.as_deref(), Some(message), "{id}");
        }
        let clean = matches!(finish, Some("tool_calls" | "stop" | "tool_use" | "end_turn" | "completed"));
        assert_eq!(decoded.ended_well(), clean && case["error"].is_null(), "{id}");
        for call in &decoded.calls {
            assert!(decoded.ended_well() || !(call.executable || call.call.complete), "{id}");
        }
    }
    assert_eq!(seen, 197);
}

/// Puts frames of Chat Completions together and gives what the calls came to, in short:
/// `id|name|arguments|status|executable`, with `~` for a generated id.
#[track_caller]
fn check_chat(frames: &[Value], tail: &str, expected: &[&str], finish: &str) {
    let mut body = String::new();
    for frame in frames {
        body.push_str(&format!("data: {frame}\n\n"));
    }
    body.push_str(tail);
    for cut in [usize::MAX, 1, 7] {
        let decoded = decode(Format::OpenAiChat, body.as_bytes(), cut);
        let value = result(&decoded);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let got: Vec<String> = value["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| {
                let id = call["id"].as_str().unwrap_or("~");
                let arguments = call.get("arguments_raw").unwrap_or(&call["arguments"]);
                [id, &text(&call["name"]), &text(arguments), &text(&call["status"]), &text(&call["executable"])]
                    .join("|")
            })
            .collect();
        assert_eq!(
            (got.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), text(&value["finish"]).as_str()),
            (expected, finish)
        );
    }
}

fn tool(index: Option<i64>, id: Option<&str>, name: Option<&str>, arguments: &Value) -> Value {
    let mut entry = Map::new();
    for (key, value) in [("index", index.map(Value::from)), ("id", id.map(Value::from))] {
        if let Some(value) = value {
            entry.insert(key.to_owned(), value);
        }
    }
    let mut function = json!({ "arguments": arguments });
    if let Some(name) = name {
        function["name"] = name.into();
    }
    entry.insert("function".to_owned(), function);
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [entry] } }] })
}

fn end(word: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": word }] })
}

#[test]
fn adversarial_chat_streams() {
    let (zero, one) = (Some(0), Some(1));
    // R1a, R4: one id for two calls.
    check_chat(
        &[
            tool(zero, Some("x"), Some("a"), &json!("{\"n\":1}")),
            tool(one, Some("x"), Some("b"), &json!("{\"n\":2}")),
            end("tool_calls"),
        ],
        "",
        &["x|a|{\"n\":1}|ok|true", "~|b|{\"n\":2}|ok|true"],
        "tool_calls",
    );
    // R1a: a seen id wins over another index.
    check_chat(
        &[
            tool(zero, Some("x"), Some("a"), &json!("{\"n\"")),
            tool(one, Some("y"), Some("b"), &json!("{}")),
            tool(one, Some("x"), None, &json!(":1}")),
            end("stop"),
        ],
        "",
        &["x|a|{\"n\":1}|ok|true", "y|b|{}|ok|true"],
        "tool_calls",
    );
    // R1c: a known index, an id that differs without a name is ignored.
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!("{")), tool(zero, Some("z"), None, &json!("}")), end("stop")],
        "",
        &["x|a|{}|ok|true"],
        "tool_calls",
    );
    // R1e: an unknown index without id and name goes on with the call touched last.
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!("{")), tool(Some(9), None, None, &json!("}")), end("stop")],
        "",
        &["x|a|{}|ok|true"],
        "tool_calls",
    );
    // R1f: without an index a name starts a call, unless the latest has none.
    check_chat(
        &[
            tool(None, None, Some("a"), &json!("{}")),
            tool(None, None, Some("a"), &json!("{}")),
            tool(None, Some("k"), None, &json!("")),
            end("stop"),
        ],
        "",
        &["~|a|{}|ok|true", "k|a|{}|ok|true"],
        "tool_calls",
    );
    check_chat(
        &[tool(zero, Some("x"), None, &json!("")), tool(None, None, Some("a"), &json!("{}")), end("stop")],
        "",
        &["x|a|{}|ok|true"],
        "tool_calls",
    );
    // R2: the id may come late, the first one stays.
    check_chat(
        &[
            tool(zero, None, Some("a"), &json!("{")),
            tool(zero, Some("late"), None, &json!("}")),
            tool(zero, Some("later"), None, &json!("")),
            end("stop"),
        ],
        "",
        &["late|a|{}|ok|true"],
        "tool_calls",
    );
    // R3: a name after arguments when none was known; another one starts a call.
    check_chat(
        &[
            tool(zero, Some("x"), None, &json!("{}")),
            tool(zero, None, Some("a"), &json!("")),
            tool(zero, None, Some("b"), &json!("{\"n\":2}")),
            end("stop"),
        ],
        "",
        &["x|a|{}|ok|true", "~|b|{\"n\":2}|ok|true"],
        "tool_calls",
    );
    // No name at all.
    check_chat(
        &[tool(zero, Some("x"), None, &json!("{}")), end("stop")],
        "",
        &["x||{}|missing_name|false"],
        "tool_calls",
    );
    // R7, R8: other types are not repaired.
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!([1])), end("stop")],
        "",
        &["x|a|[1]|arguments_not_object|false"],
        "tool_calls",
    );
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!("null")), end("stop")],
        "",
        &["x|a|null|arguments_not_object|false"],
        "tool_calls",
    );
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!("{}{}")), end("stop")],
        "",
        &["x|a|{}{}|invalid_json|false"],
        "tool_calls",
    );
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!("{\"n\":NaN}")), end("stop")],
        "",
        &["x|a|{\"n\":NaN}|invalid_json|false"],
        "tool_calls",
    );
    // R5: bytes after the mark are ignored, whatever they are.
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!("{}"))],
        "data: [DONE]\n\ndata: {\"error\":\"no\"}\n\n\u{FFFD}",
        &["x|a|{}|ok|true"],
        "tool_calls",
    );
    // R10: an error, a bad frame, a filter and an unknown word all keep the calls from running.
    let call = tool(zero, Some("x"), Some("a"), &json!("{}"));
    let held = &["x|a|{}|ok|false"];
    check_chat(&[call.clone(), end("content_filter")], "data: [DONE]\n\n", held, "content_filter");
    check_chat(&[call.clone(), end("length"), end("stop")], "data: [DONE]\n\n", held, "length");
    check_chat(&[call.clone(), end("stop"), json!({ "error": "late" })], "data: [DONE]\n\n", held, "error");
    check_chat(&[call.clone(), end("never_heard")], "data: [DONE]\n\n", held, "error");
    check_chat(&[call.clone(), end("stop")], "event: error\ndata: overloaded\n\n", held, "error");
    check_chat(&[call.clone(), end("stop")], "data: {]\n\n", held, "error");
    check_chat(&[call.clone()], "data: [DONE]", held, "truncated");
    // A call that goes on after the end needs another end.
    check_chat(&[end("stop"), call.clone()], "", held, "truncated");
    // R6: what is odd is skipped.
    check_chat(
        &[
            json!({ "choices": null, "usage": null, "error": null, "id": 7 }),
            json!({ "choices": [{ "index": 1, "delta": { "content": "no", "tool_calls": [{ "id": "q", "function": { "name": "q" } }] } }] }),
            json!({ "choices": [{ "delta": null }, { "index": 0, "delta": [] }] }),
            json!({ "choices": [{ "index": 0, "delta": { "content": [{ "type": "text", "text": "" }], "tool_calls": null }, "finish_reason": "" }] }),
            call,
            end("stop"),
        ],
        ": bye\n\nretry: 1\n\ndata:\n\ndata\n\n",
        &["x|a|{}|ok|true"],
        "tool_calls",
    );
}

#[test]
fn whole_bodies() {
    let call = |arguments: &str| {
        format!(
            "{{\"choices\":[{{\"index\":0,\"finish_reason\":\"tool_calls\",\"message\":{{\"content\":null,\"tool_calls\":[\
         {{\"id\":\"x\",\"function\":{{\"name\":\"a\",\"arguments\":{arguments}}}}},\
         {{\"id\":\"x\",\"function\":{{\"name\":\"a\",\"arguments\":\"\"}}}}]}}}}]}}"
        )
    };
    let body = call("{\"big\":123456789012345678901234567890, \"d\":0.10}");
    for cut in [usize::MAX, 1, 7] {
        let mut spaced = b"\xEF\xBB\xBF \n".to_vec();
        spaced.extend_from_slice(body.as_bytes());
        let decoded = decode(Format::OpenAiChat, &spaced, cut);
        // The digits stay as they came; two calls never share an id.
        assert_eq!(decoded.calls[0].call.arguments.as_str(), "{\"big\":123456789012345678901234567890, \"d\":0.10}");
        assert_eq!(decoded.calls.len(), 2);
        assert_ne!(decoded.calls[0].call.id, decoded.calls[1].call.id);
        assert!(decoded.calls.iter().all(|call| call.executable));
    }
    let cut = decode(Format::OpenAiChat, &body.as_bytes()[..body.len() - 3], usize::MAX);
    assert_eq!(result(&cut)["finish"], "truncated");
    for (body, kind) in [
        ("{\"error\":{\"message\":\"m\",\"code\":400}}", "provider_error"),
        ("{\"object\":\"error\",\"message\":\"m\",\"code\":400}", "provider_error"),
        ("{\"detail\":\"Not Found\"}", "protocol_violation"),
        ("[]", "malformed_frame"),
        ("{\"choices\":]", "malformed_frame"),
        ("", "truncated_stream"),
        ("<html>bad gateway</html>\n\n", "truncated_stream"),
        ("{\"choices\":[{\"message\":{\"content\":\"x\"}}]}", "truncated_stream"),
    ] {
        let decoded = decode(Format::OpenAiChat, body.as_bytes(), usize::MAX);
        assert_eq!(result(&decoded)["error"]["kind"], kind, "{body}");
    }
}

#[test]
fn limits_and_bytes_that_are_no_text() {
    let frame = "data: {\"choices\":[{\"delta\":{\"content\":\"abcdefgh\"}}]}\n\n".repeat(100);
    for options in [DecodeOptions::default().with_max_bytes(1000), DecodeOptions::default().with_max_frame_bytes(40)] {
        let mut texts = BTreeSet::new();
        for cut in [usize::MAX, 1, 7, 999] {
            let mut decoder = Format::OpenAiChat.decoder(options.clone()).unwrap();
            frame.as_bytes().chunks(cut.min(frame.len())).for_each(|piece| drop(decoder.push(piece)));
            let decoded = decoder.finish();
            assert_eq!(result(&decoded)["error"]["kind"], "limit_exceeded");
            texts.insert(decoded.text);
        }
        assert_eq!(texts.len(), 1, "the result does not depend on the cut");
    }
    let mut many = Format::OpenAiChat.decoder(DecodeOptions::default().with_max_calls(3)).unwrap();
    for n in 0..5 {
        let frame = tool(None, Some(&format!("c{n}")), Some("a"), &json!("{}"));
        many.push(format!("data: {frame}\n\n").as_bytes());
    }
    let many = many.finish();
    assert_eq!((many.calls.len(), many.calls.iter().any(|call| call.executable)), (3, false));
    // No bytes make it panic.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let alphabet = b"data: {}[]\"\\ud8:,0\n\r\xEF\xBB\xBFevnt\xFFchoices";
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..200)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                alphabet[usize::try_from(state % alphabet.len() as u64).unwrap()]
            })
            .collect();
        for format in Format::ALL {
            if format.decoder(DecodeOptions::default()).is_some() {
                let whole = result(&decode(*format, &bytes, usize::MAX));
                assert_eq!(whole, result(&decode(*format, &bytes, 1)));
            }
        }
    }
    // Deep nesting is text to be refused later, not a crash.
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let body = format!("data: {}\n\n", tool(Some(0), Some("x"), Some("a"), &json!(deep)));
    assert_eq!(decode(Format::OpenAiChat, body.as_bytes(), 4096).calls.len(), 1);
    let body = format!("data: {{\"x\":{}\n\n", "[".repeat(100_000));
    assert_eq!(result(&decode(Format::OpenAiChat, body.as_bytes(), 4096))["finish"], "error");
}

#[test]
fn calls_outside_the_request_are_flagged() {
    let body = format!("data: {}\n\ndata: [DONE]\n\n", tool(Some(0), Some("x"), Some("a"), &json!("{}")));
    for (choice, outside) in [
        (ToolChoice::Auto, false),
        (ToolChoice::Required, false),
        (ToolChoice::None, true),
        (ToolChoice::Named("a".to_owned()), false),
        (ToolChoice::Named("b".to_owned()), true),
    ] {
        let options = DecodeOptions::default().with_choice(choice).with_offered(["b"]);
        let mut decoder = Format::OpenAiChat.decoder(options).unwrap();
        decoder.push(body.as_bytes());
        let decoded = decoder.finish();
        assert_eq!((decoded.calls[0].call.outside_choice, decoded.calls[0].offered), (outside, false));
    }
}
