//! AG-UI: runs that end with a question, runs that continue, and reasoning, sources and errors.

use serde_json::{Value, json};
use tool_runtime::Event;
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};

/// The events of a stream.
fn sent(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    text.split_terminator("\n\n")
        .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

fn run(mut encoder: UiEncoder, events: &[Value]) -> Vec<Value> {
    let mut bytes = Vec::new();
    for event in events {
        bytes.extend(encoder.push_event(&serde_json::from_value::<Event>(event.clone()).unwrap()));
    }
    bytes.extend(encoder.finish());
    sent(&bytes)
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn fresh() -> UiEncoder {
    UiEncoder::new(Protocol::AgUi).for_run("thread_1", "run_1")
}

fn suspended(id: &str, outcome: &str) -> Value {
    json!({
        "type": "tool_call_suspended", "id": id, "question": tests::never(id), "name": "mail__send", "arguments": { "to": "ada" },
        "outcome": outcome, "prepared": (outcome == "client_required").then(|| json!({ "place": 1 })),
    })
}

fn result(id: &str, outcome: &str) -> Value {
    let error = (outcome != "ok").then(|| json!({ "errorCode": outcome, "safeMessage": "No.", "errors": [] }));
    json!({
        "type": "tool_call_result", "id": id, "name": "mail__send", "arguments": { "to": "ada" }, "outcome": outcome,
        "value": "sent", "error": error, "executed": outcome == "ok",
    })
}

fn done(reason: &str) -> Value {
    json!({ "type": "done", "reason": reason })
}

#[test]
fn a_question_says_what_the_call_would_do() {
    let change = json!({"kind": "defaulted", "pointer": "/copy", "after": true});
    let mut event = suspended("a", "approval_required");
    event["summary"] = json!("Sends a mail to “ada”");
    event["changes"] = json!([change]);
    event["names"] = json!([{"pointer": "/to", "name": "Ada Lovelace"}]);
    let asked = json!({
        "toolCallId": "a", "approvalId": tests::never("a"), "summary": "Sends a mail to “ada”", "changes": [change],
        "names": [{"pointer": "/to", "name": "Ada Lovelace"}],
    });
    let events = run(fresh(), &[event.clone(), done("approval_required")]);
    let custom = json!({"name": "approval", "id": "a", "data": asked});
    assert!(events.iter().any(|event| event["type"] == "CUSTOM" && event["value"] == custom), "{events:?}");
    let interrupt = &events.last().unwrap()["outcome"]["interrupts"][0];
    assert_eq!(interrupt["message"], "Sends a mail to “ada”");

    let event: Event = serde_json::from_value(event).unwrap();
    let mut encoder = UiEncoder::new(Protocol::UiMessageStream);
    let events = sent(&encoder.push_event(&event));
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types[types.len() - 3..], ["tool-input-available", "data-approval", "tool-approval-request"]);
    assert_eq!((&events[types.len() - 2]["id"], &events[types.len() - 2]["data"]), (&json!("a"), &asked));

    for protocol in [Protocol::DataStream, Protocol::AssistantTransport] {
        let bytes = UiEncoder::new(protocol).push_event(&event);
        assert!(String::from_utf8(bytes).unwrap().contains(&asked["summary"].to_string()), "{protocol:?}");
    }
}

#[test]
fn a_question_ends_the_run_with_an_interrupt() {
    let events = run(fresh(), &[suspended("a", "approval_required"), done("approval_required")]);
    assert_eq!(
        types(&events),
        [
            "RUN_STARTED",
            "STEP_STARTED",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
    );
    assert_eq!(
        events[0],
        json!({ "type": "RUN_STARTED", "threadId": "thread_1", "runId": "run_1", "protocolVersion": "1.0" })
    );
    assert_eq!(events[3]["delta"], r#"{"to":"ada"}"#);
    let end = &events[6];
    assert_eq!((&end["threadId"], &end["runId"]), (&json!("thread_1"), &json!("run_1")));
    let [interrupt] = end["outcome"]["interrupts"].as_array().unwrap().as_slice() else { panic!("one interrupt") };
    assert_eq!((&interrupt["id"], &interrupt["toolCallId"]), (&json!(tests::never("a")), &json!("a")));
    assert_eq!(interrupt["message"], "Allow the call of mail__send?");
    assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
}

#[test]
fn a_tool_of_the_client_ends_the_run_with_its_call_pending() {
    let events = run(fresh(), &[suspended("a", "client_required"), done("client_required")]);
    assert_eq!(events[3]["delta"], r#"{"place":1}"#, "the client gets what was prepared for it");
    assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "success", "pendingToolCallIds": ["a"] }));
    // Next to a question the call is open without being named: a success with an open question is none.
    let events = run(
        fresh(),
        &[suspended("a", "client_required"), suspended("b", "approval_required"), done("client_required")],
    );
    let outcome = &events.last().unwrap()["outcome"];
    assert_eq!((&outcome["type"], outcome["interrupts"].as_array().unwrap().len()), (&json!("interrupt"), 1));
}

#[test]
fn a_run_that_was_cancelled_says_so() {
    let text = json!({ "type": "text_delta", "text": "Let me" });
    let events = run(fresh(), &[text, done("cancelled")]);
    assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "cancelled" }));
    let usage = json!({ "type": "usage", "input_tokens": u64::MAX, "output_tokens": 2 });
    let events = run(fresh(), &[usage, done("answered")]);
    let end = events.last().unwrap();
    assert_eq!(end["outcome"], json!({ "type": "success" }));
    assert_eq!(end["usage"], json!([{ "inputTokens": 9_007_199_254_740_991_u64, "outputTokens": 2 }]));
}

#[test]
fn the_next_run_settles_the_call_without_starting_it_again() {
    let text = json!({ "type": "text_delta", "text": "Done." });
    for (outcome, failed) in [("ok", Value::Null), ("approval_denied", json!(true)), ("outcome_unknown", json!(true))] {
        let encoder = UiEncoder::resuming(Protocol::AgUi, "msg_1", ["a"]).for_run("thread_1", "run_2");
        let events = run(encoder, &[result("a", outcome), text.clone(), done("answered")]);
        let expected = [
            "RUN_STARTED",
            "TOOL_CALL_RESULT",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ];
        assert_eq!(types(&events), expected);
        assert_eq!((&events[1]["toolCallId"], &events[1]["metadata"]["isError"]), (&json!("a"), &failed));
        assert_eq!(events[3]["messageId"], "run_2-1");
        assert_eq!(events[7]["outcome"], json!({ "type": "success" }));
    }
}

#[test]
fn what_still_waits_is_asked_again_at_the_end() {
    let encoder = UiEncoder::resuming(Protocol::AgUi, "msg_1", ["a", "b"]);
    let events = run(encoder, &[result("a", "ok"), done("approval_required")]);
    assert_eq!(types(&events), ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]);
    assert_eq!(events[2]["outcome"]["interrupts"][0]["id"], "b");
    assert_eq!(events[0]["threadId"], "msg_1");
}

#[test]
fn an_approved_call_of_the_client_brings_what_was_prepared() {
    let encoder = UiEncoder::resuming(Protocol::AgUi, "msg_1", ["a"]);
    let events = run(encoder, &[suspended("a", "client_required"), done("client_required")]);
    assert_eq!(types(&events), ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);
    assert_eq!(events[1]["name"], "tool-input");
    assert_eq!(events[1]["value"], json!({ "toolCallId": "a", "input": { "place": 1 } }));
    assert_eq!(events[2]["outcome"]["pendingToolCallIds"], json!(["a"]));
}

#[test]
fn the_calls_of_a_turn_belong_to_one_message() {
    let start = |id: &str| json!({ "type": "tool_call_start", "id": id, "name": "core__ping" });
    let text = |text: &str| json!({ "type": "text_delta", "text": text });
    let list = [text("One."), start("a"), text("Two."), start("b"), result("a", "ok"), result("b", "ok"), start("c")];
    let events = run(fresh(), &list);
    let carriers: Vec<_> = events.iter().filter_map(|event| event["parentMessageId"].as_str()).collect();
    assert_eq!(carriers, ["run_1-1", "run_1-1", "run_1-3"]);
    let texts: Vec<_> =
        events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_START").map(|event| &event["messageId"]).collect();
    assert_eq!(texts, ["run_1-1", "run_1-2"]);
}

#[test]
fn reasoning_is_a_span_of_its_own() {
    let reasoning = json!({ "type": "reasoning_delta", "text": "Hm." });
    let events = run(fresh(), &[reasoning.clone(), reasoning, json!({ "type": "text_delta", "text": "So." })]);
    assert_eq!(
        types(&events)[2..7],
        [
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
        ]
    );
    assert_eq!(events[7]["type"], "REASONING_END");
}

#[test]
fn addresses_that_a_page_would_run_are_left_out() {
    for &protocol in Protocol::ALL {
        let mut encoder = UiEncoder::new(protocol);
        let mut bytes = Vec::new();
        for url in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " javascript:alert(1)",
            "file:///etc",
            "data:text/html,x",
            "",
        ] {
            let source = json!({ "type": "source", "id": "s", "url": url, "title": "T" });
            bytes.extend(encoder.push(&serde_json::from_value::<UiEvent>(source).unwrap()));
            if !url.starts_with("data:") {
                let file = json!({ "type": "file", "media_type": "image/png", "url": url });
                bytes.extend(encoder.push(&serde_json::from_value::<UiEvent>(file).unwrap()));
            }
        }
        assert!(bytes.is_empty(), "{protocol}: {}", String::from_utf8_lossy(&bytes));
        let source = json!({ "type": "source", "id": "s", "url": "HTTPS://a.example", "title": "T" });
        let bytes = encoder.push(&serde_json::from_value::<UiEvent>(source).unwrap());
        assert!(String::from_utf8(bytes).unwrap().contains("HTTPS://a.example"));
    }
}

#[test]
fn an_error_ends_the_run_with_its_code() {
    let events = run(fresh(), &[json!({ "type": "error", "code": "turn_limit", "message": "Too many turns." })]);
    assert_eq!(types(&events), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(events[1], json!({ "type": "RUN_ERROR", "message": "Too many turns.", "code": "turn_limit" }));
}
