//! Responses of Gemini, as events and as an array, decoded whole and in pieces.

use serde_json::{Value, json};
use tests::wire::{decode, result};
use tool_runtime::wire::Format;

/// A chunk with these parts and this finish reason.
fn chunk(parts: &Value, word: &str) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" } });
    if !word.is_empty() {
        candidate["finishReason"] = word.into();
    }
    json!({ "candidates": [candidate] })
}

fn call(call: &Value) -> Value {
    json!([{ "functionCall": call }])
}

/// The calls in short, `~` for a generated id, and the finish: the same for events and for an array, in every cut.
#[track_caller]
fn check(chunks: &[Value], expected: &[&str], finish: &str) {
    let events: Vec<_> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let events = events.concat();
    for body in [events, serde_json::to_string_pretty(chunks).unwrap(), json!(chunks).to_string()] {
        for cut in [usize::MAX, 1, 7] {
            let value = result(&decode(Format::Gemini, body.as_bytes(), cut));
            let calls: Vec<String> = value["calls"]
                .as_array()
                .unwrap()
                .iter()
                .map(|call| {
                    let arguments = call.get("arguments_raw").unwrap_or(&call["arguments"]);
                    let id = call["id"].as_str().unwrap_or("~");
                    format!("{id}|{}|{arguments}|{}", call["name"].as_str().unwrap(), call["executable"])
                })
                .collect();
            assert_eq!(
                (calls, value["finish"].as_str().unwrap()),
                (expected.iter().map(|&call| call.to_owned()).collect(), finish),
                "{body}"
            );
        }
    }
}

#[test]
fn calls_come_whole() {
    let named = |id: &str, name: &str| json!({ "functionCall": { "id": id, "name": name, "args": { "n": 1 } } });
    check(
        &[chunk(&json!([{ "text": "Hm." }, named("a", "x"), named("", "y")]), "STOP")],
        &["a|x|{\"n\":1}|true", "~|y|{\"n\":1}|true"],
        "tool_calls",
    );
    // Lists of several chunks add up, and the reason may come alone.
    check(
        &[chunk(&json!([named("a", "x")]), ""), chunk(&json!([named("b", "x")]), ""), chunk(&json!([]), "STOP")],
        &["a|x|{\"n\":1}|true", "b|x|{\"n\":1}|true"],
        "tool_calls",
    );
    // The same call again is a repeat, another one under its id gets its own id.
    check(
        &[chunk(&json!([named("a", "x"), named("a", "x"), named("a", "y")]), "STOP")],
        &["a|x|{\"n\":1}|true", "~|y|{\"n\":1}|true"],
        "tool_calls",
    );
    // Without arguments, with arguments of another type, without a name.
    check(
        &[chunk(
            &json!([{ "functionCall": { "name": "x" } }, { "functionCall": { "name": "x", "args": 7 } }, { "functionCall": { "args": {} } }]),
            "STOP",
        )],
        &["~|x|\"\"|true", "~|x|\"7\"|false", "~||null|false"],
        "tool_calls",
    );
}

#[test]
fn only_a_finish_reason_lets_calls_run() {
    let chunks = |word: &str| [chunk(&call(&json!({ "id": "a", "name": "x", "args": {} })), word)];
    check(&chunks("STOP"), &["a|x|{}|true"], "tool_calls");
    for (word, finish) in [
        ("", "truncated"),
        ("FINISH_REASON_UNSPECIFIED", "truncated"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("LANGUAGE", "error"),
        ("OTHER", "error"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("MISSING_THOUGHT_SIGNATURE", "error"),
        ("A_WORD_OF_TOMORROW", "error"),
        ("CONTINUATION", "length"),
        ("MODEL_ARMOR", "content_filter"),
    ] {
        check(&chunks(word), &["a|x|{}|false"], finish);
    }
    check(&chunks("stop"), &["a|x|{}|true"], "tool_calls");
    // A call after the end needs another end.
    let late = call(&json!({ "id": "b", "name": "x", "args": {} }));
    check(&[chunks("STOP")[0].clone(), chunk(&late, "")], &["a|x|{}|false", "b|x|{}|false"], "truncated");
    // The word of an earlier chunk does not undo a cut.
    check(&[chunks("SAFETY")[0].clone(), chunk(&json!([]), "STOP")], &["a|x|{}|false"], "content_filter");
    // A gateway's mark ends nothing.
    let body = format!("data: {}\n\ndata: [DONE]\n\n", chunks("")[0]);
    assert!(!decode(Format::Gemini, body.as_bytes(), 7).ended_well());
}

#[test]
fn what_is_not_for_the_reader_is_skipped() {
    let other = json!({ "index": 1, "content": { "parts": [{ "text": "no" }] }, "finishReason": "STOP" });
    let parts = json!([{ "text": "I think.", "thought": true }, { "text": "Yes" }, { "executableCode": { "code": "1" } },
        { "codeExecutionResult": { "output": "1" } }, { "inlineData": { "data": "AA==" } }, 7, { "text": null }, { "text": "." }]);
    let mut first = chunk(&parts, "STOP");
    first["candidates"].as_array_mut().unwrap().insert(0, other);
    first["candidates"][0]["groundingMetadata"] = json!({ "webSearchQueries": ["x"] });
    let last = json!({ "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 7,
        "cachedContentTokenCount": 4, "toolUsePromptTokenCount": 100 }, "modelVersion": "m", "responseId": "r" });
    let body = json!([first, json!({}), last]).to_string();
    let decoded = decode(Format::Gemini, body.as_bytes(), 7);
    assert_eq!((decoded.text.as_str(), decoded.provider_finish.as_deref()), ("Yes.", Some("STOP")));
    assert_eq!((decoded.model.as_deref(), decoded.response_id.as_deref()), (Some("m"), Some("r")));
    // The prompt includes the cached tokens; results of the provider's tools are counted in addition.
    let usage = decoded.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.total_input(), usage.total_output()), (10, 110, 12));
}

#[test]
fn errors_come_as_objects_and_in_arrays() {
    let error = json!({ "error": { "code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED" } });
    for body in [
        error.to_string(),
        json!([error]).to_string(),
        format!("data: {error}\n\n"),
        format!("event: error\ndata: {error}\n\n"),
    ] {
        for cut in [usize::MAX, 1] {
            let value = result(&decode(Format::Gemini, body.as_bytes(), cut));
            let expected = json!({ "kind": "provider_error", "message": "quota", "code": 429 });
            assert_eq!((&value["error"], &value["finish"]), (&expected, &json!("error")), "{body}");
        }
    }
    // The malformed text of the model stays out of the error.
    let mut malformed = chunk(&json!([]), "MALFORMED_FUNCTION_CALL");
    malformed["candidates"][0]["finishMessage"] = "Malformed function call: print(SECRET)".into();
    let decoded = decode(Format::Gemini, malformed.to_string().as_bytes(), 7);
    assert_eq!(decoded.provider_finish.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
    assert!(!format!("{decoded:?}").contains("SECRET"));
    // A prompt that was blocked has no candidates.
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    check(std::slice::from_ref(&blocked), &[], "content_filter");
    assert_eq!(result(&decode(Format::Gemini, blocked.to_string().as_bytes(), 7))["finish"], "content_filter");
}

#[test]
fn an_array_is_cut_into_its_objects() {
    let whole =
        "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a }{\\\" ]\\\\\"}]},\"finishReason\":\"STOP\"}]}";
    for (body, kind) in [
        (format!("[{whole}]"), None),
        (format!("\u{feff} [\r\n{whole}\n,\n{{}}\n]\n\n"), None),
        (format!("[{whole}"), Some("truncated_stream")),
        (format!("[{whole},"), Some("truncated_stream")),
        (format!("[{whole},{{\"candidates\""), Some("truncated_stream")),
        ("[]".to_owned(), Some("truncated_stream")),
        ("[".to_owned(), Some("truncated_stream")),
        (format!("[{whole}]x"), Some("malformed_frame")),
        (format!("[{whole} {whole}]"), Some("malformed_frame")),
        (format!("[,{whole}]"), Some("malformed_frame")),
        (format!("[{whole},]"), Some("malformed_frame")),
        (format!("[1,{whole}]"), Some("malformed_frame")),
        (format!("[[{whole}]]"), Some("malformed_frame")),
        (format!("[{whole},{{]}}]"), Some("malformed_frame")),
        (format!("[{{\"a\":\"\u{1}\"}},{whole}]"), Some("malformed_frame")),
        (format!("{whole}]"), Some("malformed_frame")),
        ("{\"a\":1}".to_owned(), Some("protocol_violation")),
        ("{\"candidates\":[".to_owned(), Some("truncated_stream")),
    ] {
        for cut in [usize::MAX, 1, 7] {
            let value = result(&decode(Format::Gemini, body.as_bytes(), cut));
            assert_eq!(value["error"]["kind"].as_str(), kind, "{cut} {body}");
            assert!(kind.is_some() || value["text"] == "a }{\" ]\\", "{value}");
        }
    }
    // Objects are bounded, and depth costs neither a stack nor time.
    let deep = format!("[{{\"x\":{}", "{\"x\":".repeat(100_000));
    assert_eq!(decode(Format::Gemini, deep.as_bytes(), 4096).error.unwrap().code(), "truncated_stream");
    for cut in [usize::MAX, 1, 7] {
        let mut decoder = Format::Gemini.decoder().with_max_frame_bytes(whole.len() - 1);
        format!("[{{}},{whole}]").as_bytes().chunks(cut).for_each(|piece| drop(decoder.push(piece)));
        assert_eq!(decoder.finish().error.unwrap().code(), "limit_exceeded");
    }
}

fn partial(values: &Value, continues: bool) -> Value {
    let mut call = json!({ "partialArgs": values });
    if continues {
        call["willContinue"] = true.into();
    }
    chunk(&self::call(&call), "")
}

#[test]
fn arguments_come_in_pieces() {
    let start = chunk(&call(&json!({ "id": "a", "name": "x", "willContinue": true })), "");
    let end = chunk(&call(&json!({})), "STOP");
    let piece = |text: &str, continues: bool| json!({ "jsonPath": "$.a['b c'][0].t", "stringValue": text, "willContinue": continues });
    check(
        &[
            start.clone(),
            partial(&json!([piece("on", true)]), true),
            partial(&json!([piece("e\"", false), { "jsonPath": "$.a['b c'][0].n", "numberValue": 1.50 }]), true),
            partial(
                &json!([{ "jsonPath": "$.a[\"b c\"][1]", "boolValue": true }, { "jsonPath": "$.z", "nullValue": null },
                { "jsonPath": "$.e", "stringValue": "" }, { "jsonPath": "$.skipped" }]),
                true,
            ),
            end.clone(),
        ],
        &["a|x|{\"a\":{\"b c\":[{\"n\":1.5,\"t\":\"one\\\"\"},true]},\"e\":\"\",\"z\":null}|true"],
        "tool_calls",
    );
    // Several calls, the last with its pieces and its end in one part; one with its name again.
    let named = json!({ "name": "y", "partialArgs": [{ "jsonPath": "$.n", "numberValue": 2 }] });
    check(
        &[
            start.clone(),
            chunk(&call(&json!({ "name": "x", "partialArgs": [{ "jsonPath": "$.n", "numberValue": 1 }] })), ""),
            chunk(&call(&named), "STOP"),
        ],
        &["a|x|{\"n\":1}|true", "~|y|{\"n\":2}|true"],
        "tool_calls",
    );
    check(&[start.clone(), end.clone()], &["a|x|{}|true"], "tool_calls");
    // Cut within its arguments.
    check(&[start.clone(), partial(&json!([piece("on", true)]), true)], &["a|x|\"\"|false"], "truncated");
    check(
        &[start.clone(), partial(&json!([piece("on", true)]), true), chunk(&json!([]), "MAX_TOKENS")],
        &["a|x|\"\"|false"],
        "length",
    );
    // A call, or a string, that never ends; a call that begins within another.
    check(&[start.clone(), chunk(&json!([]), "STOP")], &["a|x|\"\"|false"], "error");
    check(&[start.clone(), partial(&json!([piece("on", true)]), true), end.clone()], &["a|x|\"\"|false"], "error");
    check(&[start.clone(), start.clone(), end.clone()], &["a|x|\"\"|false"], "error");
    check(&[start.clone(), chunk(&call(&named), ""), end.clone()], &["a|x|\"\"|false"], "error");
    // Values without a place.
    let number = |path: &str| json!({ "jsonPath": path, "numberValue": 1 });
    for values in [
        json!([number("")]),
        json!([number("$")]),
        json!([number("$[0]")]),
        json!([number("a")]),
        json!([number("$.")]),
        json!([number("$..a")]),
        json!([number("$.a[")]),
        json!([number("$.a[-1]")]),
        json!([number("$.a[+0]")]),
        json!([number("$.a[1]")]),
        json!([number("$.a[99999999999999999999]")]),
        json!([number("$.a['b")]),
        json!([number("$.a['b'")]),
        json!([number("$.a[*]")]),
        json!([number("$.a"), number("$.a")]),
        json!([number("$.a"), number("$.a.b")]),
        json!([number("$.a.b"), number("$.a[0]")]),
        json!([piece("x", false), piece("y", false)]),
        json!([{ "jsonPath": "$.a", "numberValue": "NaN" }]),
        json!([number(&format!("${}", ".a".repeat(65)))]),
    ] {
        check(&[start.clone(), partial(&values, true), end.clone()], &["a|x|\"\"|false"], "error");
    }
    // Whole arguments next to pieces.
    let both = json!({ "args": { "n": 1 }, "partialArgs": [number("$.m")] });
    check(&[start, chunk(&call(&both), "STOP")], &["a|x|\"\"|false"], "error");
}
