//! Chat Completions that no well-behaved server sends, decoded whole and in pieces of different sizes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tests::provider::Turn;
use tests::wire::{decode, result};
use tool_runtime::wire::{Decoded, Decoder, DisplayEvent, Format, ToolChoice};

/// Decodes frames of Chat Completions, and compares the calls in short: `id|name|arguments|status|executable`, with `~`
/// for a generated id.
#[track_caller]
fn check_chat(frames: &[Value], tail: &str, expected: &[&str], finish: &str) {
    let mut body = String::new();
    for frame in frames {
        write!(body, "data: {frame}\n\n").unwrap();
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
fn deltas_are_attributed_to_their_calls() {
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
    // R1e: an unknown index without id and name continues the call touched last.
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
}

#[test]
fn only_a_clean_end_lets_calls_run() {
    let zero = Some(0);
    // R5: bytes after the mark are ignored, whatever they are.
    check_chat(
        &[tool(zero, Some("x"), Some("a"), &json!("{}"))],
        "data: [DONE]\n\ndata: {\"error\":\"no\"}\n\n\u{FFFD}",
        &["x|a|{}|ok|true"],
        "tool_calls",
    );
    // No name at all.
    check_chat(
        &[tool(zero, Some("x"), None, &json!("{}")), end("stop")],
        "",
        &["x||{}|missing_name|false"],
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
    check_chat(std::slice::from_ref(&call), "data: [DONE]", held, "truncated");
    // A call that continues after the end needs another end.
    check_chat(&[end("stop"), call.clone()], "", held, "truncated");
    // R6: odd parts are skipped.
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
fn framing() {
    let frame = "{\"choices\":[{\"delta\":\ndata:{\"content\":\"hi\"},\ndata: \"finish_reason\":\"stop\"}]}";
    for stream in [
        format!("data: {frame}\n\n"),
        format!("\u{FEFF}: comment\n:\nid: 1\nevent: message\ndata: {frame}\nretry: 5\n\n"),
        format!("data: {frame}\n\n").replace('\n', "\r\n"),
        format!("data: {frame}\n\n").replace('\n', "\r"),
        format!("\n\n \ndata: {frame}\n\ndata: [DONE]"),
    ] {
        for cut in [usize::MAX, 1, 2, 3, 7] {
            let response = decode(Format::OpenAiChat, stream.as_bytes(), cut);
            assert_eq!((response.text.as_str(), response.ended_well()), ("hi", true), "{stream:?} {cut}");
        }
    }
    // The event line belongs to its own frame only.
    let stream = format!("event: error\n\ndata: {frame}\n\n");
    assert!(decode(Format::OpenAiChat, stream.as_bytes(), 1).ended_well());
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
        assert_eq!(decoded.calls[0].call.arguments(), "{\"big\":123456789012345678901234567890, \"d\":0.10}");
        assert_eq!(decoded.calls.len(), 2);
        assert_ne!(decoded.calls[0].call.id, decoded.calls[1].call.id);
        assert!(decoded.calls.iter().all(tool_runtime::wire::DecodedCall::is_executable));
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
    let limits: [fn(Decoder) -> Decoder; 2] =
        [|decoder| decoder.with_max_bytes(1000), |decoder| decoder.with_max_frame_bytes(40)];
    for limited in limits {
        let mut texts = BTreeSet::new();
        for cut in [usize::MAX, 1, 7, 999] {
            let mut decoder = limited(Format::OpenAiChat.decoder());
            frame.as_bytes().chunks(cut.min(frame.len())).for_each(|piece| drop(decoder.push(piece)));
            let response = decoder.finish();
            assert_eq!(result(&response)["error"]["kind"], "limit_exceeded");
            texts.insert(response.text);
        }
        assert_eq!(texts.len(), 1, "the result does not depend on the cut");
    }
    let mut many = Format::OpenAiChat.decoder().with_max_calls(3);
    for n in 0..5 {
        let frame = tool(None, Some(&format!("c{n}")), Some("a"), &json!("{}"));
        many.push(format!("data: {frame}\n\n").as_bytes());
    }
    let many = many.finish();
    assert_eq!((many.calls.len(), many.calls.iter().any(tool_runtime::wire::DecodedCall::is_executable)), (3, false));
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
            let whole = result(&decode(*format, &bytes, usize::MAX));
            assert_eq!(whole, result(&decode(*format, &bytes, 1)));
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
fn what_fuzzing_found() {
    // A form feed is white space to people and none to JSON, in front of the first line too.
    let line = "\u{c}{\"message\":{\"content\":\"x\"},\"done\":true}\n";
    assert_eq!(result(&decode(Format::Ollama, line.as_bytes(), 1))["error"]["kind"], "malformed_frame");
    // Half a surrogate pair is JSON text that no string can hold: the call keeps it as it came, and hydration refuses
    // it.
    let half = json!("{\"t\":\"\\ud83d\"}");
    let body = format!("data: {}\n\ndata: [DONE]\n\n", tool(Some(0), Some("x"), Some("a"), &half));
    let decoded = decode(Format::OpenAiChat, body.as_bytes(), 7);
    assert_eq!(decoded.calls[0].call.arguments(), half);
    assert!(serde_json::to_string(&decoded).is_ok());
}

/// A cursor of our own reads frames. It accepts the same JSON as other parsers.
#[test]
fn a_frame_is_json_or_malformed() {
    let refused = |text: &str| {
        let decoded = decode(Format::Ollama, format!("{text}\n").as_bytes(), usize::MAX);
        result(&decoded)["error"]["kind"] == "malformed_frame"
    };
    for good in [
        "{}",
        " { \"x\" : [ 1 , -0.5e+3 , true , null ] , \"y\" : { } } ",
        r#"{"x":"\u00e9\b\f\n\/","mod\u0065l":"m","model2":0}"#,
        r#"{"model":"\ud83d\ude80 é","eval_count":1e999,"done":false}"#,
        r#"{"eval_count":123456789012345678901234567890,"message":[]}"#,
    ] {
        assert!(!refused(good), "{good}");
    }
    for bad in [
        "{",
        "{]",
        "[]",
        "1",
        "nul",
        "{} {}",
        "{\"x\"}",
        "{\"x\":}",
        "{\"x\":1,}",
        "{,}",
        "{x:1}",
        "{\"x\":01}",
        "{\"x\":1.}",
        "{\"x\":-}",
        "{\"x\":1e}",
        "{\"x\":+1}",
        "{\"x\":tru}",
        "{\"x\":[1,]}",
        "{\"x\":\"\t\"}",
        "{\"x\":\"\\q\"}",
        "{\"x\":\"\\u12\"}",
        "{\"model\":\"\\q\"}",
        "{\"model\":\"\\ud83d\"}",
        "{\"model\":\"\u{1}\"}",
        "{\"model\":1,\"model\":2}",
        "{\"mod\\u0065l\":1,\"model\":2}",
        "{\"model\":\"",
    ] {
        assert!(refused(bad), "{bad}");
    }
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
        let mut decoder = Format::OpenAiChat.decoder().with_choice(choice).with_offered(["b"]);
        decoder.push(body.as_bytes());
        let response = decoder.finish();
        assert_eq!((response.calls[0].call.outside_choice, response.calls[0].offered), (outside, false));
    }
}

#[test]
fn what_is_shown_comes_once_and_in_order() {
    let frames = [
        tool(Some(0), None, Some("a"), &json!("{\"n\"")),
        tool(Some(1), Some("y"), Some("wea"), &json!("")),
        tool(Some(1), None, Some("ther"), &json!("")),
        tool(Some(1), None, None, &json!("{}")),
        tool(Some(0), Some("late"), None, &json!(":1}")),
        tool(Some(2), None, Some("b"), &json!("")),
        end("stop"),
    ];
    let mut decoder = Format::OpenAiChat.decoder();
    let mut shown = Vec::new();
    for frame in &frames {
        for event in decoder.push(format!("data: {frame}\n\n").as_bytes()) {
            shown.push(match event {
                DisplayEvent::CallStarted { id, name } => {
                    format!("start {} {name}", if id.as_str().len() > 30 { "~" } else { id.as_str() })
                }
                DisplayEvent::ArgumentsDelta { text, .. } => format!("delta {text}"),
                other => format!("{other:?}"),
            });
        }
    }
    assert_eq!(shown, ["start y weather", "delta {}", "start late a", "delta {\"n\"", "delta :1}", "start ~ b"]);
}

/// Half a surrogate pair and a repeated key, which the gate refuses, are not executable arguments in any format.
#[test]
fn arguments_that_the_gate_cannot_read_are_not_executable() {
    let arguments = r#"{"text":"§","a":1,"¶":2}"#;
    for &format in Format::ALL {
        let stream = Turn::calls([("c1", "a__b", arguments)]).stream(format);
        let is_text = !matches!(format, Format::Gemini | Format::Ollama);
        let half = if is_text { r"\\ud800" } else { r"\ud800" };
        for (text, key, runs) in [("x", "b", true), (half, "b", false), ("x", "a", false)] {
            let body = stream.replace('§', text).replace('¶', key);
            for cut in [usize::MAX, 1, 7] {
                let decoded = decode(format, body.as_bytes(), cut);
                let executable = decoded.calls.iter().filter(|call| call.is_executable()).count();
                assert_eq!(executable, usize::from(runs), "{format} {text} {key} {cut}: {decoded:?}");
                assert!(!decoded.calls.is_empty() || decoded.error.is_some(), "{format}: something says why");
            }
        }
    }
}

/// Pushes frames until the decoder is closed, and returns how many it took and the result.
fn until_closed(format: Format, frames: impl Iterator<Item = Value>) -> (usize, Decoded) {
    let mut decoder = format.decoder();
    let taken = frames
        .take_while(|frame| {
            let is_open = !decoder.is_closed();
            decoder.push_with(format!("data: {frame}\n\n").as_bytes(), |_| {});
            is_open
        })
        .count();
    (taken, decoder.finish())
}

#[test]
fn a_turn_with_too_many_parts_fails_at_once() {
    let start = json!({"type": "message_start", "message": {"id": "m"}});
    let block = |at: i64| json!({"type": "content_block_start", "index": at, "content_block": {"type": "text"}});
    let blocks = std::iter::once(start).chain((0..20_000).map(block));
    let refusal =
        |at: i64| json!({"type": "response.refusal.delta", "output_index": at, "content_index": 0, "delta": "no"});
    let item = |at: i64| json!({"type": "response.output_item.added", "output_index": at, "item": {"type": "x"}});
    let thought = |_| json!({"candidates": [{"content": {"parts": [{"text": "a", "thoughtSignature": "s"}]}}]});
    for (taken, decoded) in [
        until_closed(Format::Anthropic, blocks),
        until_closed(Format::OpenAiResponses, (0..20_000).map(refusal)),
        until_closed(Format::OpenAiResponses, (0..20_000).map(item)),
        until_closed(Format::Gemini, (0..20_000).map(thought)),
    ] {
        assert_eq!(decoded.error.map(|error| error.code()), Some("limit_exceeded"));
        assert!((8192..=8194).contains(&taken), "{taken}");
    }
}

#[test]
fn texts_that_are_replaced_again_and_again_fail_the_turn() {
    let text = |kind: &str, at: i64, text: &str| {
        let member = if kind == "done" { "text" } else { "delta" };
        json!({"type": format!("response.output_text.{kind}"), "output_index": at, member: text})
    };
    let begin = [text("delta", 0, "a"), text("delta", 1, &"b".repeat(4 << 20))];
    // Each replacement moves four megabytes.
    let replaced = (0..1000).map(|at| text("done", 0, if at % 2 == 0 { "cc" } else { "d" }));
    let (taken, decoded) = until_closed(Format::OpenAiResponses, begin.into_iter().chain(replaced));
    assert_eq!(decoded.error.map(|error| error.code()), Some("limit_exceeded"));
    assert!(taken < 100, "{taken}");
    // A text that is repeated moves nothing.
    let repeated = (0..1000).map(|_| text("done", 0, "a"));
    let begin = [text("delta", 0, "a"), text("delta", 1, &"b".repeat(4 << 20))];
    let (taken, _) = until_closed(Format::OpenAiResponses, begin.into_iter().chain(repeated));
    assert_eq!(taken, 1002);
}

#[test]
fn text_where_a_refusal_was_is_text() {
    let event = |kind: &str| json!({"type": kind, "output_index": 0, "content_index": 0, "delta": "a"});
    let frames = ["response.refusal.delta", "response.output_text.delta", "response.output_text.delta"].map(event);
    let (_, decoded) = until_closed(Format::OpenAiResponses, frames.into_iter());
    assert_eq!((decoded.text.as_str(), decoded.refusal.as_deref()), ("aa", Some("a")));
}
