//! A turn is kept whole: what a response carries goes back to its provider unchanged and in its place, and to no other.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its fixture has nothing to say")]

#[path = "wire_turns/anthropic.rs"]
mod anthropic;
#[path = "wire_turns/anthropic_rules.rs"]
mod anthropic_rules;
#[path = "wire_turns/gemini.rs"]
mod gemini;
#[path = "wire_turns/ollama.rs"]
mod ollama;
#[path = "wire_turns/openai_chat.rs"]
mod openai_chat;
#[path = "wire_turns/openai_responses.rs"]
mod openai_responses;

use serde_json::{Value, json};
use tests::wire::decode;
use tool_runtime::wire::history::{Carried, Part, TextPart};
use tool_runtime::wire::{Format, Message};

fn body(format: Format, history: &[Message], model: Option<&str>) -> Value {
    serde_json::to_value(format.encode_messages(history, model).body).unwrap()
}

fn losses(format: Format, history: &[Message], model: Option<&str>) -> Vec<String> {
    format.encode_messages(history, model).losses.iter().map(ToString::to_string).collect()
}

#[test]
fn thinking_goes_back_to_ollama_and_to_no_other_format() {
    let bytes = br#"{"model":"m","message":{"thinking":"Let me "}}
{"model":"m","message":{"thinking":"see."}}
{"model":"m","message":{"content":"Yes."},"done":true,"done_reason":"stop"}"#;
    for size in [usize::MAX, 1, 7] {
        let turn = [Message::Assistant(decode(Format::Ollama, bytes, size).parts())];
        let kept = json!({ "messages": [{ "role": "assistant", "content": "Yes.", "thinking": "Let me see." }] });
        assert_eq!(body(Format::Ollama, &turn, Some("m")), kept);
        assert_eq!(losses(Format::Ollama, &turn, Some("m")), [""; 0]);
        for (format, model) in [(Format::OpenAiChat, "m"), (Format::Anthropic, "m"), (Format::Ollama, "another")] {
            assert!(!body(format, &turn, Some(model)).to_string().contains("see"), "{format}");
            assert_eq!(losses(format, &turn, Some(model)), ["reasoning at /0"], "{format}");
        }
    }
}

#[test]
fn what_is_carried_is_saved_as_it_came_and_shown_nowhere() {
    let json = r#"{ "n": 1.0e400, "secret": "canary" }"#;
    let carried = Carried::new(Format::Gemini, Some("m"), json).unwrap();
    let history = vec![Message::Assistant(vec![
        Part::Carried(carried),
        Part::Reasoning(TextPart::new("canary")),
        Part::Refusal("canary".to_owned()),
        Part::text("canary"),
    ])];
    assert!(!format!("{history:?}").contains("canary"));
    let saved = serde_json::to_value(&history).unwrap();
    let restored: Vec<Message> = serde_json::from_value(saved).unwrap();
    assert_eq!(restored, history);
    let Message::Assistant(parts) = &restored[0] else { panic!("a turn") };
    assert_eq!(parts[0].carried().unwrap().json(), json);
    for broken in ["", "1", "[]", "{", "{} {}", "not JSON"] {
        assert!(Carried::new(Format::Gemini, None, broken).is_err(), "{broken}");
        let saved = json!({ "carried": { "format": "gemini", "json": broken } });
        assert!(serde_json::from_value::<Part>(saved).is_err(), "{broken}");
    }
}
