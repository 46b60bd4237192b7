//! Every wire case: streams whole, at 1 byte and at 7 bytes; requests, results, strict nulls; recorded transcripts.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tool_runtime::wire::assemble::Decoded;
use tool_runtime::wire::http_record;
use tool_runtime::wire::openai_chat::{self, DecodeOptions, Decoder};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a fixture")).expect("JSON")
}

fn decode(bytes: &[u8], chunk: usize) -> Decoded {
    let mut decoder = Decoder::new(DecodeOptions::default());
    for piece in bytes.chunks(chunk.max(1)) {
        decoder.push(piece);
    }
    decoder.finish()
}

/// The decode result in the shape of the fixtures; generated ids are checked and blanked.
fn shape(decoded: &Decoded) -> Value {
    let mut ids: Vec<_> = decoded.calls.iter().map(|call| call.call.id.as_str().to_owned()).collect();
    assert!(ids.iter().all(|id| !id.is_empty()));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), decoded.calls.len(), "ids are unique");
    serde_json::to_value(decoded).expect("a decode result is data")
}

fn cases(kind: &str) -> Vec<Value> {
    let index = read_json(&fixtures().join("wire/index.json"));
    let cases: Vec<_> = index["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .filter(|case| case["format"] == "openai_chat" && case["kind"] == kind)
        .cloned()
        .collect();
    assert!(!cases.is_empty(), "no {kind} cases");
    cases
}

fn file(case: &Value, key: &str) -> PathBuf {
    fixtures().join("wire").join(case[key].as_str().expect("a path"))
}

#[test]
fn streams_decode_the_same_in_any_cut() {
    let mut wrong = Vec::new();
    for case in cases("stream") {
        let bytes = fs::read(file(&case, "input")).expect("a stream");
        for chunk in [bytes.len(), 1, 7] {
            let found = shape(&decode(&bytes, chunk));
            if found != case["expected"] {
                wrong.push(format!(
                    "{} in pieces of {chunk}:\n  expected {}\n  found    {found}",
                    case["id"], case["expected"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
fn check_encoding(kind: &str, encode: impl Fn(Value) -> Value) {
    let mut wrong = Vec::new();
    for case in cases(kind) {
        let expected = read_json(&file(&case, "expected_file"));
        let found = encode(read_json(&file(&case, "input")));
        if found != expected {
            wrong.push(format!("{}:\n  expected {expected}\n  found    {found}", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn requests() {
    check_encoding("request", |input| {
        let request = serde_json::from_value(input).expect("a request");
        match openai_chat::encode_request(&request) {
            Ok(encoded) => encoded.body,
            Err(error) => error.to_value(),
        }
    });
}

#[test]
fn results() {
    check_encoding("result", |input| openai_chat::encode_turn(&serde_json::from_value(input).expect("a turn")));
}

#[test]
fn strict_nulls() {
    check_encoding("strict_null", |input| {
        openai_chat::strip_strict_nulls(&serde_json::from_value(input).expect("arguments"))
    });
}

#[test]
fn transcripts_decode_to_their_index() {
    let folder = fixtures().join("transcripts");
    let mut wrong = Vec::new();
    let index = read_json(&folder.join("index.json"));
    for case in index.as_array().expect("cases") {
        let recorded = fs::read(folder.join(case["response"].as_str().expect("a path"))).expect("a recording");
        let body = http_record::read(&recorded).expect("a recording").body;
        let decoded = decode(&body, body.len());
        assert_eq!(shape(&decoded)["calls"], shape(&decode(&body, 1))["calls"], "{}", case["id"]);
        let found: Vec<_> = decoded
            .calls
            .iter()
            .map(|call| json!([call.call.id, call.call.name, call.call.arguments.as_str()]))
            .collect();
        let expected: Vec<_> = case["calls"]
            .as_array()
            .expect("calls")
            .iter()
            .map(|call| json!([call["id"], call["name"], call["arguments"]]))
            .collect();
        if found != expected {
            wrong.push(format!("{}:\n  expected {expected:?}\n  found    {found:?}", case["id"]));
        }
        let clean = matches!(case["finish"].as_str(), Some("tool_calls" | "stop")) && case["error"].is_null();
        if !clean && decoded.calls.iter().any(|call| call.executable) {
            wrong.push(format!("{}: executable after an unclean end", case["id"]));
        }
        if decoded.error.is_none() && !case["error"].is_null() {
            wrong.push(format!("{}: the error was not seen", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A recorded response that is cut at any byte before its end runs nothing.
#[test]
fn a_cut_response_runs_nothing() {
    let path = fixtures().join("wire/openai_chat/stream/single_call.sse");
    let bytes = fs::read(path).expect("a stream");
    let text = String::from_utf8(bytes.clone()).expect("text");
    let finished =
        text.find("\"finish_reason\":\"tool_calls\"").or_else(|| text.find("\"tool_calls\"}")).expect("its end");
    for end in 0..finished {
        let decoded = decode(&bytes[..end], end);
        assert!(decoded.calls.iter().all(|call| !call.executable), "cut at {end}");
    }
}

#[test]
fn bodies_that_are_no_responses_are_typed_errors() {
    for (body, code) in [
        ("", "truncated_stream"),
        ("<html>502</html>", "malformed_frame"),
        ("{", "truncated_stream"),
        (r#"{"error":"no"}"#, "provider_error"),
        ("[1]", "malformed_frame"),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"\u{0}\"}}]}\n\n", "malformed_frame"),
    ] {
        let decoded = decode(body.as_bytes(), body.len());
        assert_eq!(decoded.error.map(|error| error.code()), Some(code), "{body:?}");
        assert!(decoded.calls.is_empty());
    }
    assert_eq!(decode(b"data: \xff\n\n", 3).error.map(|error| error.code()), Some("malformed_frame"));
}
