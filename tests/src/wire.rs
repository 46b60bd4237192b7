//! Reading and running the wire fixtures.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // A test cannot continue without its fixture.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::{Decoded, Format, Message};

pub use crate::same::same;

/// The folder of fixtures.
#[must_use]
pub fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder)
}

/// A JSON file.
#[must_use]
pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The status and the body of a recorded response, chunked framing removed.
#[must_use]
pub fn recorded(bytes: &[u8]) -> (u16, Vec<u8>) {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let (head, mut rest) = (std::str::from_utf8(&bytes[..end]).unwrap(), &bytes[end + 4..]);
    let status = head[9..12].parse().unwrap();
    if !head.lines().any(|line| line.eq_ignore_ascii_case("transfer-encoding: chunked")) {
        return (status, rest.to_vec());
    }
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return (status, body);
        }
        body.extend_from_slice(&rest[line + 2..][..size]);
        rest = &rest[line + 2 + size + 2..];
    }
}

/// Decodes bytes that come in pieces of `cut` bytes.
#[must_use]
pub fn decode(format: Format, bytes: &[u8], cut: usize) -> Decoded {
    let mut decoder = format.decoder();
    for piece in bytes.chunks(cut) {
        decoder.push(piece);
    }
    decoder.finish()
}

/// The decode result, with generated ids checked to be fresh and replaced by `null`.
#[must_use]
pub fn result(decoded: &Decoded) -> Value {
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

/// The cases of one kind, of the formats that exist.
#[must_use]
pub fn cases(kind: &str) -> Vec<(Format, Value)> {
    let index = read_json(&fixtures("wire").join("index.json"));
    let cases = index["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == kind);
    cases.filter_map(|case| Some((case["format"].as_str()?.parse().ok()?, case.clone()))).collect()
}

/// Compares each case and reports all that differ.
pub fn each_case(kind: &str, run: impl Fn(Format, &Value) -> Vec<(String, Value, Value)>) {
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

/// The input of a case.
#[must_use]
pub fn input(case: &Value) -> Value {
    read_json(&fixtures("wire").join(case["input"].as_str().unwrap()))
}

/// The input as text: order of keys and digits as the file has them.
#[must_use]
pub fn raw(case: &Value) -> Box<serde_json::value::RawValue> {
    serde_json::from_slice(&std::fs::read(fixtures("wire").join(case["input"].as_str().unwrap())).unwrap()).unwrap()
}

/// The expected value of a case.
#[must_use]
pub fn expected(case: &Value) -> Value {
    read_json(&fixtures("wire").join(case["expected_file"].as_str().unwrap()))
}

/// A turn of the model: text, if there is any, and calls.
pub fn turn(text: &str, calls: Vec<CallMessage>) -> Message {
    let text = (!text.is_empty()).then(|| Part::text(text));
    Message::Assistant(text.into_iter().chain(calls.into_iter().map(Part::Call)).collect())
}
