//! UI streams of a response that continues a message: calls of the earlier response are updated in place.

use serde_json::{Value, json};
use tool_runtime::Event;
use tool_runtime::wire::ui::{Protocol, UiEncoder};

fn result(id: &str, outcome: &str) -> Value {
    let error = (outcome != "ok").then(|| json!({ "errorCode": outcome, "safeMessage": "No.", "errors": [] }));
    json!({
        "type": "tool_call_result", "id": id, "name": "mail__send", "arguments": { "to": "ada" }, "outcome": outcome,
        "value": 1, "error": error, "executed": outcome == "ok",
    })
}

fn suspended(id: &str, outcome: &str) -> Value {
    json!({
        "type": "tool_call_suspended", "id": id, "question": tests::never(id), "name": "mail__send", "arguments": { "to": "ada" },
        "outcome": outcome, "prepared": { "to": "ada" },
    })
}

/// The frames of a response after the first one, as `type` and `toolCallId`.
fn resumed(events: &[Value]) -> Vec<String> {
    let mut encoder = UiEncoder::resuming(Protocol::UiMessageStream, "msg_1", ["a", "b"]);
    let mut bytes = Vec::new();
    for event in events {
        bytes.extend(encoder.push_event(&serde_json::from_value::<Event>(event.clone()).unwrap()));
    }
    bytes.extend(encoder.finish());
    let text = String::from_utf8(bytes).unwrap();
    let mut frames = text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    assert_eq!(frames.next(), Some(r#"{"type":"start","messageId":"msg_1"}"#));
    frames
        .filter(|frame| *frame != "[DONE]")
        .map(|frame| {
            let frame: Value = serde_json::from_str(frame).unwrap();
            let about = [&frame["toolCallId"], &frame["finishReason"]].into_iter().find_map(Value::as_str);
            [frame["type"].as_str(), about].into_iter().flatten().collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[track_caller]
fn check(events: &[Value], expected: &[&str]) {
    assert_eq!(resumed(events), expected);
}

#[test]
fn results_come_before_the_step_and_nothing_starts_again() {
    let start = json!({ "type": "tool_call_start", "id": "a", "name": "mail__send" });
    let (text, done) = (json!({ "type": "text_delta", "text": "Sent." }), json!({ "type": "done", "reason": "stop" }));
    let rest = ["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish stop"];
    for (outcome, frame) in [
        ("ok", "tool-output-available"),
        ("approval_denied", "tool-output-denied"),
        ("execution_error", "tool-output-error"),
        ("outcome_unknown", "tool-output-error"),
    ] {
        let (first, second) = (format!("{frame} a"), "tool-output-available b");
        let expected: Vec<_> = [first.as_str(), second].into_iter().chain(rest).collect();
        check(&[start.clone(), result("a", outcome), result("b", "ok"), text.clone(), done.clone()], &expected);
    }
}

#[test]
fn what_still_waits_stays_open_and_is_not_asked_again() {
    let waiting = json!({ "type": "done", "reason": "approval_required" });
    check(&[result("a", "ok"), waiting], &["tool-output-available a", "finish tool-calls"]);
    // The run emitted no events.
    check(&[], &["finish tool-calls"]);
}

#[test]
fn a_call_that_is_suspended_again_is_updated_in_place() {
    let waiting = json!({ "type": "done", "reason": "client_required" });
    check(&[suspended("a", "client_required"), waiting.clone()], &["tool-input-available a", "finish tool-calls"]);
    check(
        &[suspended("a", "approval_required"), waiting],
        &["tool-input-available a", "tool-approval-request a", "finish tool-calls"],
    );
}

#[test]
fn a_file_of_one_call_does_not_keep_the_next_from_its_place() {
    let file = json!({ "type": "file", "media_type": "image/png", "url": "https://example.com/a.png" });
    let done = json!({ "type": "done", "reason": "tool-calls" });
    // The client needs the payload that was prepared for it.
    check(
        &[result("a", "ok"), file.clone(), suspended("b", "client_required"), done.clone()],
        &[
            "tool-output-available a",
            "tool-input-available b",
            "start-step",
            "file",
            "finish-step",
            "finish tool-calls",
        ],
    );
    let text = json!({ "type": "text_delta", "text": "Sent." });
    let words = ["text-start", "text-delta", "text-end", "finish-step", "finish stop"];
    let before = ["tool-output-available a", "tool-output-available b", "start-step", "file", "file", "finish-step"];
    check(
        &[
            result("a", "ok"),
            file.clone(),
            result("b", "ok"),
            file.clone(),
            text,
            json!({ "type": "done", "reason": "stop" }),
        ],
        &[&before[..], &["start-step"], &words[..]].concat(),
    );
    // Nothing more comes of the other call.
    check(
        &[result("a", "ok"), file.clone(), done],
        &["tool-output-available a", "start-step", "file", "finish-step", "finish tool-calls"],
    );
    let broken = json!({ "type": "error", "code": "x", "message": "No." });
    check(&[result("a", "ok"), file, broken], &["tool-output-available a", "start-step", "file", "error"]);
}

#[test]
fn new_calls_start_as_always_and_ids_that_come_back_do_not() {
    let start = |id: &str| json!({ "type": "tool_call_start", "id": id, "name": "core__ping" });
    let done = json!({ "type": "done", "reason": "stop" });
    check(
        &[result("a", "ok"), result("b", "ok"), start("c"), start("a"), result("c", "ok"), done],
        &[
            "tool-output-available a",
            "tool-output-available b",
            "start-step",
            "tool-input-start c",
            "tool-input-available c",
            "tool-output-available c",
            "finish-step",
            "finish stop",
        ],
    );
}

#[test]
fn the_other_protocols_start_the_call_again() {
    for protocol in [Protocol::DataStream, Protocol::AssistantTransport] {
        let mut encoder = UiEncoder::resuming(protocol, "msg_1", ["a"]);
        let mut bytes = encoder.push_event(&serde_json::from_value(result("a", "ok")).unwrap());
        bytes.extend(encoder.finish());
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r#""toolCallId":"a","toolName":"mail__send""#), "{text}");
    }
}

#[test]
fn discovered_tools_are_dynamic() {
    for (name, dynamic) in [("mcp__db__query", true), ("core__ping", false)] {
        let mut encoder = UiEncoder::new(Protocol::UiMessageStream);
        let mut bytes = Vec::new();
        for kind in ["tool_call_start", "tool_call_result"] {
            let mut event = result("a", "ok");
            (event["type"], event["name"]) = (kind.into(), name.into());
            bytes.extend(encoder.push_event(&serde_json::from_value(event).unwrap()));
        }
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches(r#""dynamic":true"#).count(), if dynamic { 2 } else { 0 }, "{text}");
    }
}
