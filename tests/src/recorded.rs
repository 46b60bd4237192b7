//! Compares decoded responses of real providers with the results of the official SDKs.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // A test cannot continue without its fixture.

use std::path::Path;

use serde_json::{Value, json};
use tool_runtime::wire::history::Part;
use tool_runtime::wire::{Decoded, Format};

use crate::wire::{decode, read_json, same};

/// Items that wait for the client, of kinds that the index does not mark.
const MUST_ACT: [&str; 2] = ["shell_call", "\"execution\":\"client\""];

/// Decodes each response of a folder whole and in pieces of 1 and 7 bytes. Returns the number of responses, and the
/// differences from the folder's index.
#[must_use]
pub fn check(folder: &Path) -> (usize, Vec<String>) {
    let index = read_json(&folder.join("index.json"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for case in index.as_array().unwrap() {
        let format: Format = case["format"].as_str().unwrap().parse().unwrap();
        seen += 1;
        let body = std::fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        let text: String = String::from_utf8_lossy(&body).split_whitespace().collect();
        let must_act = case["client_must_act"] == true || MUST_ACT.iter().any(|item| text.contains(item));
        let expected = expectation(case);
        for cut in [usize::MAX, 1, 7] {
            let decoded = decode(format, &body, cut);
            let mut got = summary(&decoded);
            if case["expected"].get("signatures").is_none() {
                got["signatures"] = Value::Null;
            }
            let ids = case["expected"]["calls"].as_array().unwrap().iter().map(|call| call["id"].as_str());
            for (call, id) in got["calls"].as_array_mut().unwrap().iter_mut().zip(ids) {
                // The SDK of Ollama drops ids and Gemini sends none, so the index has `null` or an empty id.
                if id.unwrap_or_default().is_empty() {
                    call[0] = Value::Null;
                }
            }
            // `null` in the index: the SDK has no value for this end.
            if expected["finish"].is_null() {
                got["finish"] = Value::Null;
            }
            // A clean end would hide that the client has to act.
            if must_act && expected["finish"] == "stop" && (decoded.ended_well() || decoded.error.is_none()) {
                wrong.push(format!("{} cut {cut}: a clean end hides what the client must do", case["id"]));
            }
            if !same(&got, &expected) {
                wrong.push(format!("{} cut {cut}\n  got      {got}\n  expected {expected}", case["id"]));
            }
        }
    }
    (seen, wrong)
}

fn summary(decoded: &Decoded) -> Value {
    let signatures = decoded.parts().iter().filter(|part| is_signed(part)).count();
    let decoded = serde_json::to_value(decoded).unwrap();
    let calls = decoded["calls"].as_array().unwrap().iter();
    let calls: Vec<_> = calls.map(|call| json!([call["id"], call["name"], call["arguments"]])).collect();
    json!({
        "calls": calls,
        "text": decoded["text"],
        "finish": decoded["finish"],
        "word": decoded["provider_finish"],
        "usage": decoded["usage"],
        "refusal": decoded["refusal"],
        "signatures": signatures,
    })
}

/// Whether a part of Gemini has a thought signature.
fn is_signed(part: &Part) -> bool {
    let provider_state =
        part.provider_state().map(|provider_state| serde_json::from_str::<Value>(provider_state.json()).unwrap());
    provider_state.is_some_and(|provider_state| provider_state["thoughtSignature"].is_string())
}

fn expectation(case: &Value) -> Value {
    let expected = &case["expected"];
    let calls = expected["calls"].as_array().unwrap().iter();
    let calls: Vec<_> = calls
        .map(|call| {
            let id = call["id"].as_str().filter(|id| !id.is_empty());
            json!([id, call["name"], call["arguments"]])
        })
        .collect();
    json!({
        "calls": calls,
        "text": expected["text"],
        "finish": expected["finish"],
        "word": expected["word"],
        "usage": expected["usage"],
        "refusal": expected["refusal"],
        "signatures": expected["signatures"],
    })
}
