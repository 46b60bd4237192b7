//! The JSON documents of the types in `call` can be read back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call::*;

#[track_caller]
fn reads_back<T: Serialize + DeserializeOwned>(value: &T) -> (T, Value) {
    let text = serde_json::to_string(value).unwrap();
    let again: T = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    (again, serde_json::from_str(&text).unwrap())
}

#[test]
fn calls_cross_a_queue() {
    let whole = ToolCall::text("c1", "core__add", r#"{"a":1.0}"#);
    let mut object = ToolCall::object("c2", "core__add", r#"{"a":18446744073709551615}"#);
    object.outside_choice = true;
    object.id_source = IdSource::Generated;
    object.provider = Some("openai_chat".into());
    object.provider_call_id = Some("call_0".to_owned());
    object.response_id = Some("r".to_owned());
    object.frame = Some(7);
    for call in [whole.clone(), object, whole.clone().incomplete(), ToolCall::text("", "", "not JSON \u{0}")] {
        let (again, _) = reads_back(&call);
        assert_eq!(again, call);
    }
    // An incomplete call stays incomplete.
    assert!(!reads_back(&whole.clone().incomplete()).0.is_complete());
    let mut document = serde_json::to_value(&whole).unwrap();
    document.as_object_mut().unwrap().remove("complete");
    assert!(serde_json::from_value::<ToolCall>(document).is_err(), "a document cannot leave it out");
}

fn raw(text: &str) -> JsonText {
    JsonText::known(text)
}

#[test]
fn events_cross_a_process() {
    let (id, name) = (CallId::new("c1"), "core__add".to_owned());
    let left_out = || LeftOut { items: 3, bytes: 5 };
    let error = SafeError {
        error_code: Outcome::ExecutionError,
        tool_code: Some("overflow".to_owned()),
        safe_message: "The sum is too large.".to_owned(),
        errors: vec![Violation::of("a", "less").with_hint("Halve it.")],
        mismatch: None,
    };
    let text = "x\n\u{1f600}".to_owned();
    let events = [
        ("text_delta", Event::TextDelta { text: text.clone() }),
        ("reasoning_delta", Event::ReasoningDelta { text: text.clone() }),
        ("source", Event::Source { id: "1".to_owned(), url: Some("https://example.org".to_owned()), title: None }),
        ("file", Event::File { media_type: "image/png".to_owned(), url: "data:,".to_owned() }),
        ("data", Event::Data { name: "chart".to_owned(), id: None, value: raw("[1.50]") }),
        ("tool_call_delta", Event::ToolCallDelta { id: id.clone(), name: name.clone(), delta: "{".to_owned() }),
        ("tool_call_start", Event::ToolCallStart { id: id.clone(), name: name.clone() }),
        (
            "tool_call_suspended",
            Event::ToolCallSuspended {
                question: Question::unknown(&id),
                id: id.clone(),
                name: name.clone(),
                arguments: Some(raw(r#"{"a":1.0}"#)),
                summary: Some("Adds 1.0.".to_owned()),
                changes: vec![ArgumentChange::new(
                    ArgumentChangeKind::Defaulted,
                    "/a".to_owned(),
                    None,
                    Some(raw("1.0")),
                )],
                names: vec![NamedArgument::new("/a".to_owned(), Ok(Some("one".to_owned())))],
                outcome: Outcome::ClientRequired,
                prepared: Some(raw("18446744073709551616")),
            },
        ),
        (
            "tool_call_result",
            Event::ToolCallResult {
                id: id.clone(),
                name: name.clone(),
                arguments: None,
                outcome: Outcome::Ok,
                value: Some(raw("1.50")),
                error: None,
                executed: true,
                left_out: left_out(),
                earlier_call: Some("before".into()),
            },
        ),
        (
            "tool_call_result",
            Event::ToolCallResult {
                id,
                name,
                arguments: None,
                outcome: Outcome::ExecutionError,
                value: None,
                error: Some(error),
                executed: false,
                left_out: LeftOut::default(),
                earlier_call: None,
            },
        ),
        ("status", Event::Status { text }),
        ("error", Event::Error { code: "turn_limit".to_owned(), message: "too many".to_owned() }),
        ("done", Event::Done { reason: "answered".to_owned() }),
    ];
    for (kind, event) in &events {
        let (_, document) = reads_back(event);
        assert_eq!(document["type"], *kind);
        // Every field of the document is needed: without it, reading fails or returns another event.
        for field in document.as_object().unwrap().keys().filter(|field| *field != "type") {
            let mut without = document.clone();
            without.as_object_mut().unwrap().remove(field);
            let again = serde_json::from_value::<Event>(without);
            assert!(again.is_err() || serde_json::to_value(again.unwrap()).unwrap() != document, "{kind} {field}");
        }
    }
    let other = json!({"type": "tool_call_paused", "id": "c1"});
    assert!(serde_json::from_value::<Event>(other).unwrap_err().to_string().contains("tool_call_paused"));
}
