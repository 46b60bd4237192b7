//! A turn is kept whole: the parts of a response go back to their provider unchanged and in their place. They do not
//! go to any other provider.

mod another_model;
mod anthropic;
mod anthropic_rules;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;

use serde_json::{Value, json};
use tests::wire::decode;
use tool_runtime::wire::history::{CallMessage, Part, ProviderState, ResultMessage};
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
    let provider_state = ProviderState::new(Format::Gemini, Some("m"), json).unwrap();
    let history = vec![Message::Assistant(vec![
        Part::ProviderState(provider_state),
        Part::reasoning("canary"),
        Part::Refusal("canary".to_owned()),
        Part::text("canary"),
    ])];
    assert!(!format!("{history:?}").contains("canary"));
    let saved = serde_json::to_value(&history).unwrap();
    let restored: Vec<Message> = serde_json::from_value(saved).unwrap();
    assert_eq!(restored, history);
    let Message::Assistant(parts) = &restored[0] else { panic!("a turn") };
    assert_eq!(parts[0].provider_state().unwrap().json(), json);
    for broken in ["", "1", "[]", "{", "{} {}", "not JSON"] {
        assert!(ProviderState::new(Format::Gemini, None, broken).is_err(), "{broken}");
        let saved = json!({ "provider_state": { "format": "gemini", "json": broken } });
        assert!(serde_json::from_value::<Part>(saved).is_err(), "{broken}");
    }
}

#[test]
fn ids_and_names_that_a_provider_refuses_are_written_in_another_way() {
    let long = "x".repeat(65);
    let wrong_ids = ["functions.get:0", "call_1__thought__a+/=", &long, "toolu_1"];
    for (name, written) in [("a__b", "a__b"), ("functions.a b", "functions_a_b"), ("", "unnamed")] {
        for id in wrong_ids {
            let turn = Message::Assistant(vec![Part::Call(CallMessage::new(id, name, "{}"))]);
            let history = [Message::user("Go."), turn, Message::Result(ResultMessage::new(id, "2"))];
            let lost = if name == written { vec![] } else { vec!["a name that no tool can have at /1"] };

            let sent = body(Format::Anthropic, &history, None);
            let (call, result) = (&sent["messages"][1]["content"][0], &sent["messages"][2]["content"][0]);
            let sent_id = call["id"].as_str().unwrap();
            assert_eq!((&call["name"], &result["tool_use_id"]), (&json!(written), &call["id"]));
            assert!(sent_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{sent_id}");
            assert_eq!(sent_id == id, id == "toolu_1" || id == long);

            let sent = body(Format::OpenAiResponses, &history, None);
            let (call, result) = (&sent["input"][1], &sent["input"][2]);
            assert_eq!((&call["name"], &result["call_id"]), (&json!(written), &call["call_id"]));
            assert_eq!(call["call_id"] == id, id != long);

            let sent = body(Format::OpenAiChat, &history, None);
            let call = &sent["messages"][1]["tool_calls"][0];
            assert_eq!((&call["function"]["name"], &call["id"]), (&json!(written), &json!(id)));
            for format in [Format::Anthropic, Format::OpenAiResponses, Format::OpenAiChat] {
                assert_eq!(losses(format, &history, None), lost, "{format}");
            }
        }
    }
}

#[test]
fn what_a_model_sent_is_in_no_debug_output() {
    let bytes = br#"{"type":"message","model":"m","content":[
        {"type":"thinking","thinking":"CANARY-1","signature":"CANARY-2"},
        {"type":"redacted_thinking","data":"CANARY-3"},
        {"type":"text","text":"CANARY-4"},
        {"type":"tool_use","id":"c","name":"a__b","input":{"x":"CANARY-5"}}],"stop_reason":"tool_use"}"#;
    let decoded = decode(Format::Anthropic, bytes, 7);
    let turn = [Message::Assistant(decoded.parts())];
    let encoded = Format::Anthropic.encode_messages(&turn, Some("m"));
    assert_eq!(encoded.body["messages"].get().matches("CANARY").count(), 5);
    let shown = format!("{decoded:?} {turn:?} {encoded:?}");
    assert!(!shown.contains("CANARY") && shown.contains("Encoded"), "{shown}");
}

#[test]
fn a_turn_has_a_bounded_number_of_parts() {
    let item =
        |at: usize| json!({ "type": "reasoning", "id": format!("rs_{at}"), "summary": [], "encrypted_content": "x" });
    let decoded = |items: usize| {
        let output: Vec<_> = (0..items).map(item).collect();
        let body = json!({ "object": "response", "id": "r", "status": "completed", "output": output });
        decode(Format::OpenAiResponses, body.to_string().as_bytes(), usize::MAX)
    };
    let (fits, too_many) = (decoded(8192), decoded(8193));
    assert!(fits.error.is_none() && fits.parts().len() == 8192, "{fits:?}");
    assert_eq!(too_many.error.as_ref().map(tool_runtime::wire::WireError::code), Some("limit_exceeded"));
    assert!(too_many.parts().is_empty(), "of an answer that is too large only text and calls are kept");
}
