//! The checks of the targets. A violated property is a panic, which libFuzzer reports.
//!
//! `./seeds.sh [CORPORA]`, then `RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . --sanitizer none openai_chat --
//! -rss_limit_mb=512` from this folder; the variable lets the stable toolchain take the flags of `cargo fuzz`. Each
//! finding is kept as a file in `cases`, in the folder of its target; the test `fuzzed` of the package `tests`, which
//! includes this file, runs them.

pub mod chat;
pub mod lock;
pub mod pick;
pub mod redact;
pub mod repair;
#[path = "../../src/same.rs"]
mod same;

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tool_runtime::__workspace::{Limits, ParseErrorKind, Tree, parse, parse_value};
use tool_runtime::wire::history::{Part, ProviderState};
use tool_runtime::wire::{DecodedCall, Decoder, DisplayEvent, Format, Message};

use self::same::same;

const WIDE: Limits = Limits { bytes: usize::MAX, depth: usize::MAX };

/// Limits that are small enough for a short input to reach.
fn decoder(format: Format) -> Decoder {
    format.decoder().with_max_bytes(16 << 10).with_max_frame_bytes(4 << 10).with_max_calls(8)
}

/// The first byte of an input decides how the others are cut.
pub fn every_cut_is_the_same(format: Format, input: &[u8]) {
    let Some((&seed, bytes)) = input.split_first() else { return };
    let whole = decode(format, bytes, |rest| rest);
    assert_eq!(whole, decode(format, bytes, |_| 1), "byte by byte");
    let mut state = u32::from(seed) + 1;
    let cuts = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as usize % (usize::from(seed % 64) + 1) + 1
    };
    assert_eq!(whole, decode(format, bytes, cuts), "in pieces");
}

/// Everything that a decoder returns, without generated ids.
fn decode(format: Format, bytes: &[u8], mut cut: impl FnMut(usize) -> usize) -> Value {
    let mut decoder = decoder(format);
    let (mut rest, mut shown, mut started) = (bytes, String::new(), Vec::new());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cut(rest.len()).min(rest.len()));
        rest = after;
        decoder.push_with(piece, |event| match event {
            DisplayEvent::Text(text) => shown.push_str(&text),
            DisplayEvent::CallStarted { id, .. } => {
                assert!(!started.contains(&id), "a call starts once");
                started.push(id);
            }
            DisplayEvent::ArgumentsDelta { id, .. } => {
                assert!(started.contains(&id), "a call starts before its arguments");
            }
            _ => {}
        });
    }
    let decoded = decoder.finish();
    assert!(decoded.text.starts_with(&shown), "what is shown is what came");
    assert!(decoded.calls.len() <= 8, "calls are bounded");
    let mut ids = BTreeSet::new();
    let mut kept = decoded.text.len();
    let mut calls = Vec::new();
    for decoded_call @ DecodedCall { call, .. } in &decoded.calls {
        let status = decoded_call.status();
        let executable = decoded_call.is_executable();
        assert!(ids.insert(call.id.as_str()), "ids are unique");
        assert!(!executable || decoded.error.is_none(), "nothing runs after an error");
        kept += call.name.len() + call.arguments().len();
        let id = call.has_provider_id().then_some(&call.id);
        // The text of the arguments, not their value: half a surrogate pair is JSON text without a value.
        calls.push(json!([id, call.name, call.arguments(), status, executable, call.frame]));
    }
    assert!(kept <= bytes.len(), "nothing is kept that did not come");
    let parts = sent_back(format, decoded.parts());
    let end = json!([decoded.finish, decoded.provider_finish, decoded.error, decoded.refusal, decoded.usage]);
    json!([calls, decoded.text, end, shown, started.len(), decoded.response_id, decoded.model, parts])
}

/// Checks the request that sends the parts of a turn back, and returns the parts. Calls are compared elsewhere, and
/// their ids may be generated, so only their provider state is returned.
fn sent_back(format: Format, parts: Vec<Part>) -> Vec<Value> {
    for json in parts.iter().filter_map(Part::provider_state).map(ProviderState::json) {
        assert!(
            serde_json::from_str::<IgnoredAny>(json).is_ok() && json.starts_with('{'),
            "the provider state is JSON"
        );
    }
    let kept = parts.iter().map(|part| match part {
        Part::Call(call) => json!({ "call": call.provider_state() }),
        part => serde_json::to_value(part).expect("a part is JSON"),
    });
    let kept = kept.collect();
    let encoded = format.encode_messages(&[Message::Assistant(parts), Message::user("Hello?")], None);
    for field in encoded.body.values() {
        assert!(serde_json::from_str::<IgnoredAny>(field.get()).is_ok(), "the request is JSON");
    }
    kept
}

/// One line of Ollama and one event of Chat Completions, distinguished from text that is not JSON.
pub fn a_frame_is_json_or_malformed(text: &str) {
    if text.contains(['\n', '\r']) || text.trim().is_empty() || text.trim() == "[DONE]" {
        return;
    }
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_strict = matches!(parse_value(text, &WIDE), Ok(Tree::Object(_)));
    for (format, frame) in [(Format::OpenAiChat, format!("data: {text}\n\n")), (Format::Ollama, format!("{text}\n"))] {
        let mut decoder = format.decoder();
        decoder.push(frame.as_bytes());
        let malformed = decoder.finish().error.is_some_and(|error| error.code() == "malformed_frame");
        assert!(malformed || is_json, "{format} took a frame that is no JSON");
        assert!(!malformed || !is_strict, "{format} refused an object without a fault");
    }
}

/// Both parsers read the same documents, except for the differences that ours documents.
pub fn arguments_agree_with_serde_json(text: &str) {
    let theirs = serde_json::from_str::<Value>(text);
    match (parse_value(text, &WIDE), &theirs) {
        (Ok(ours), Ok(theirs)) => {
            let ours = serde_json::to_value(&ours).expect("a tree is JSON");
            assert!(same(&ours, theirs), "{ours} is not {theirs}");
        }
        // Their limit is 127 levels, ours 128.
        (Ok(_), Err(error)) => assert!(error.to_string().starts_with("recursion limit"), "{error}"),
        (Err(error), Ok(_)) => {
            let documented = matches!(error.kind, ParseErrorKind::DuplicateKey | ParseErrorKind::IntegerRange);
            assert!(documented, "{error}");
        }
        (Err(error), Err(_)) => assert!(error.offset <= text.len() && text.is_char_boundary(error.offset)),
    }
    let is_blank = text.trim_matches([' ', '\t', '\n', '\r']).is_empty();
    let is_object = matches!(parse_value(text, &WIDE), Ok(Tree::Object(_)));
    assert_eq!(parse(text, &WIDE).is_ok(), is_blank || is_object, "arguments are an object, or nothing");
}
