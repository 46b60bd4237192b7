//! UI streams: the fixtures, every rule on every output, events in a wrong order, and the runner's events.

mod check;

use check::{Seen, check};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tests::wire::{fixtures, read_json};
use tool_runtime::call::JsonText;
use tool_runtime::wire::ui::{Protocol, UiEncoder, UiEvent};
use tool_runtime::{Event, Outcome};

fn cases(kind: &str) -> Vec<(Protocol, Value)> {
    let index = read_json(&fixtures("wire").join("index.json"));
    let cases = index["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == kind);
    let found: Vec<_> = cases.map(|case| (case["format"].as_str().unwrap().parse().unwrap(), case.clone())).collect();
    assert!(!found.is_empty());
    found
}

fn read(case: &Value, member: &str) -> Vec<u8> {
    std::fs::read(fixtures("wire").join(case[member].as_str().unwrap())).unwrap()
}

fn encode(protocol: Protocol, events: &[UiEvent]) -> Vec<u8> {
    let mut encoder = UiEncoder::new(protocol);
    let mut bytes: Vec<u8> = events.iter().flat_map(|event| encoder.push(event)).collect();
    bytes.extend(encoder.finish());
    assert!(encoder.finish().is_empty() && encoder.push(&UiEvent::TextDelta { text: "late".into() }).is_empty());
    bytes
}

fn events(value: &Value) -> Vec<UiEvent> {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn seen(protocol: Protocol, bytes: &[u8]) -> Seen {
    check(protocol, bytes).unwrap_or_else(|rule| panic!("{protocol}: {rule}\n{}", String::from_utf8_lossy(bytes)))
}

#[test]
fn cases_are_written_as_the_references_are() {
    for (protocol, case) in cases("ui_encode") {
        let events: Vec<UiEvent> = serde_json::from_slice(&read(&case, "input")).unwrap();
        let (got, reference) = (encode(protocol, &events), read(&case, "reference_stream"));
        let shown = seen(protocol, &got);
        // There the reference interleaves, which newer clients alone accept (U6).
        if case["id"] != "ui/data-stream/two_calls_interleaved" {
            assert_eq!(String::from_utf8(got).unwrap(), String::from_utf8(reference).unwrap(), "{}", case["id"]);
            continue;
        }
        assert!(check(protocol, &reference).is_err());
        let decoded = read_json(&fixtures("wire").join(case["expected_file"].as_str().unwrap()));
        for (call, part) in shown.calls.iter().zip(decoded["parts"].as_array().unwrap()) {
            let got = json!([call.id, call.name, call.arguments, call.result, call.failed]);
            let fields = ["toolCallId", "toolName", "argsText", "result", "isError"];
            assert_eq!(got, json!(fields.map(|field| &part[field])));
        }
    }
}

#[test]
fn what_the_packages_refuse_the_checker_refuses() {
    for (protocol, case) in cases("ui_reject") {
        assert!(check(protocol, &read(&case, "input")).is_err(), "{}", case["id"]);
    }
}

#[test]
fn every_prefix_of_a_case_ends_well() {
    for (protocol, case) in cases("ui_encode") {
        let events: Vec<UiEvent> = serde_json::from_slice(&read(&case, "input")).unwrap();
        for end in 0..events.len() {
            seen(protocol, &encode(protocol, &events[..end]));
        }
    }
}

/// A small generator: the same sequence for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const IDS: [&str; 4] = ["a", "b", "__proto__", "c"];
const DELTAS: [&str; 8] = ["{\"a\":", "1}", "{", "\"__pro", "to__\":2}", "{\"\\u005f_proto__\":1}", "\n", "}"];
const VALUES: [&str; 5] =
    ["{}", "{\"__proto__\": {\"a\" : 1},\n\"b\":[]}", "\"x\\ny\"", "null", "{\"constructor\":{\"prototype\":1}}"];
const REASONS: [&str; 5] = ["stop", "tool-calls", "tool_calls", "length", "whatever"];

fn any_event(random: &mut Random) -> Value {
    let id = random.pick(&IDS);
    let value: Value = json!("VALUE");
    let reason = random.pick(&REASONS);
    match random.below(24) {
        20 => json!({"type": "reasoning_delta", "text": random.pick(&["", "Hm", "\n\ndata: [DONE]\n\n"])}),
        21 => {
            let url = random.pick(&[Some("https://a.example/b"), Some("javascript:alert(1)"), None]);
            json!({"type": "source", "id": id, "url": url, "title": random.pick(&[None, Some("T\n")])})
        }
        22 => {
            json!({"type": "file", "media_type": "image/png", "url": random.pick(&["data:image/png;base64,AA==", "x:y"])})
        }
        23 => json!({"type": "data", "name": "d", "id": random.pick(&[None, Some("i")]), "value": value}),
        0 => json!({"type": "message_start", "id": "m"}),
        1 => json!({"type": "step_start", "id": "m"}),
        2 | 3 => {
            json!({"type": "text_delta", "text": random.pick(&["", "Hi", "\n\ndata: [DONE]\n\n", "a\rb\u{2028}"])})
        }
        4..=6 => json!({"type": "tool_start", "id": id, "name": "t", "parent_id": random.pick(&[None, Some("a")])}),
        7..=9 => json!({"type": "tool_args_delta", "id": id, "delta": random.pick(&DELTAS)}),
        10 | 11 => json!({"type": "tool_args", "id": id, "arguments": value}),
        12 => json!({"type": "tool_args_error", "id": id, "message": "bad"}),
        13 => json!({"type": "approval_request", "id": id, "approval_id": id}),
        14 => json!({"type": "approval_response", "approval_id": id, "approved": random.below(2) == 0}),
        15 | 16 => json!({"type": "tool_result", "id": id, "result": value, "is_error": random.below(3) == 0}),
        17 => json!({"type": "tool_denied", "id": id, "result": value}),
        18 => json!({"type": "step_finish", "reason": reason, "usage": [1, 2]}),
        _ => match random.below(6) {
            0 => json!({"type": "finish", "reason": reason}),
            1 => json!({"type": "error", "message": "cut"}),
            _ => json!({"type": "client_request", "id": id}),
        },
    }
}

#[test]
fn any_order_gives_a_valid_stream() {
    let mut random = Random(7);
    for _ in 0..1_500 {
        let list: Vec<String> = (0..random.below(40))
            .map(|_| any_event(&mut random).to_string().replace("\"VALUE\"", random.pick(&VALUES)))
            .collect();
        // Text keeps the exact values: a `Value` would lose a second key of the same name and the spaces.
        let events: Vec<UiEvent> = serde_json::from_str(&format!("[{}]", list.join(","))).unwrap();
        for &protocol in Protocol::ALL {
            seen(protocol, &encode(protocol, &events));
        }
    }
}

#[test]
fn refused_keys_are_renamed_in_every_cut() {
    let text = r#"{"a":{"__proto__":[1]},"\u005f_proto__":"__proto__"}"#;
    for cut in 1..text.len() {
        for &protocol in Protocol::ALL {
            let (start, end) = text.split_at(cut);
            let mut list = events(&json!([{"type": "tool_start", "id": "a", "name": "t"},
                {"type": "tool_args_delta", "id": "a", "delta": start},
                {"type": "tool_args_delta", "id": "a", "delta": end}]));
            let raw = || JsonText::from(RawValue::from_string(text.to_owned()).unwrap());
            list.push(UiEvent::ToolArgs { id: "a".into(), arguments: raw() });
            list.push(UiEvent::ToolResult { id: "a".into(), result: raw(), is_error: false, artifact: Some(raw()) });
            let shown = seen(protocol, &encode(protocol, &list));
            let expected = r#"{"a":{"_proto_":[1]},"_proto_":"__proto__"}"#;
            assert_eq!(shown.calls[0].arguments, expected);
            assert_eq!(shown.calls[0].result, serde_json::from_str(expected).unwrap());
        }
    }
}

#[test]
fn the_arguments_of_several_calls_may_arrive_in_turns() {
    let calls = [("a", ["{\"a\":", "1}"]), ("b", ["{\"b\":", "2}"]), ("c", ["{\"c\"", ":3}"])];
    let mut random = Random(11);
    for _ in 0..500 {
        let (mut list, mut left) = (Vec::new(), [0; 3]);
        while left != [4; 3] {
            let at = random.below(3);
            let (id, deltas) = calls[at];
            list.push(match left[at] {
                0 => json!({"type": "tool_start", "id": id, "name": "t"}),
                step @ (1 | 2) => json!({"type": "tool_args_delta", "id": id, "delta": deltas[step - 1]}),
                3 => json!({"type": "tool_args", "id": id, "arguments": deltas.concat().parse::<Value>().unwrap()}),
                _ => continue,
            });
            left[at] += 1;
        }
        for &protocol in Protocol::ALL {
            let shown = seen(protocol, &encode(protocol, &events(&json!(list))));
            for (id, deltas) in calls {
                let call = shown.calls.iter().find(|call| call.id == id).expect("it is shown");
                assert_eq!(call.arguments, deltas.concat(), "{protocol}: {list:?}");
            }
        }
    }
}

#[test]
fn artifacts_and_parents_stay_where_they_exist() {
    let list = events(&json!([{"type": "tool_start", "id": "b", "name": "t", "parent_id": "a"},
        {"type": "tool_result", "id": "b", "result": 1, "artifact": {"x": 2}}]));
    for &protocol in Protocol::ALL {
        let text = String::from_utf8(encode(protocol, &list)).unwrap();
        let exist = matches!(protocol, Protocol::DataStream | Protocol::AssistantTransport);
        assert_eq!((text.contains("parentId"), text.contains("artifact")), (exist, exist), "{protocol}");
    }
}

#[test]
fn names_and_headers() {
    for &protocol in Protocol::ALL {
        assert_eq!(protocol.to_string().parse(), Ok(protocol));
        assert!(protocol.content_type().starts_with("text/"));
    }
    assert!("sse".parse::<Protocol>().is_err());
    assert!(Protocol::UiMessageStream.headers().contains(&("x-vercel-ai-ui-message-stream", "v1")));
}

fn raw(value: &Value) -> Option<JsonText> {
    RawValue::from_string(value.to_string()).ok().map(JsonText::from)
}

fn event(document: &Value) -> Event {
    serde_json::from_str(&document.to_string()).expect("an event")
}

fn text(text: &str) -> Event {
    event(&json!({"type": "text_delta", "text": text}))
}

fn start(id: &str) -> Event {
    event(&json!({"type": "tool_call_start", "id": id, "name": "core__ping"}))
}

fn delta(id: &str, delta: &str) -> Event {
    event(&json!({"type": "tool_call_delta", "id": id, "name": "core__ping", "delta": delta}))
}

#[allow(clippy::needless_pass_by_value, reason = "callers make the values in place")]
fn result(id: &str, arguments: Option<JsonText>, outcome: Outcome, value: Option<JsonText>) -> Event {
    event(&json!({
        "type": "tool_call_result", "id": id, "name": "core__ping", "arguments": arguments, "outcome": outcome,
        "value": value, "executed": outcome == Outcome::Ok,
    }))
}

#[allow(clippy::needless_pass_by_value, reason = "callers make the values in place")]
fn suspended(id: &str, outcome: Outcome, prepared: Option<JsonText>) -> Event {
    event(&json!({
        "type": "tool_call_suspended", "id": id, "question": tests::never(id), "name": "ns__tool", "outcome": outcome, "prepared": prepared,
    }))
}

fn done(reason: &str) -> Event {
    event(&json!({"type": "done", "reason": reason}))
}

fn run(protocol: Protocol, events: &[Event]) -> (Seen, String) {
    let mut encoder = UiEncoder::new(protocol);
    let mut bytes: Vec<u8> = events.iter().flat_map(|event| encoder.push_event(event)).collect();
    bytes.extend(encoder.finish());
    (seen(protocol, &bytes), String::from_utf8(bytes).unwrap())
}

#[test]
fn a_run_is_shown_with_its_steps() {
    let usage = |input_tokens: u64, output_tokens: u64| {
        event(&json!({"type": "usage", "input_tokens": input_tokens, "output_tokens": output_tokens}))
    };
    for &protocol in Protocol::ALL {
        let (seen, bytes) = run(
            protocol,
            &[
                event(&json!({"type": "status", "text": "thinking"})),
                text("Let me "),
                text("see."),
                delta("a", "{\"x\""),
                delta("a", ":1}"),
                delta("b", "{}"),
                usage(10, 5),
                start("a"),
                start("b"),
                result("b", raw(&json!({})), Outcome::Ok, raw(&json!("pong"))),
                result("a", raw(&json!({"x": 1})), Outcome::ExecutionError, None),
                start("c"),
                result("c", raw(&json!({"secret": "***"})), Outcome::Ok, raw(&json!(null))),
                text("Done."),
                usage(20, 2),
                done("stop"),
            ],
        );
        assert_eq!((seen.text.as_str(), seen.steps, seen.finish.as_deref()), ("Let me see.Done.", 3, Some("stop")));
        let ids: Vec<_> = seen.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(seen.calls[0].arguments, "{\"x\":1}");
        assert!(seen.calls[0].failed && !seen.calls[1].failed);
        assert!(bytes.contains("***"));
        if protocol == Protocol::DataStream {
            assert!(bytes.ends_with(
                "e:{\"finishReason\":\"stop\",\"usage\":{\"inputTokens\":20,\"outputTokens\":2},\"isContinued\":false}\n\
                 d:{\"finishReason\":\"stop\",\"usage\":{\"inputTokens\":30,\"outputTokens\":7}}\n"
            ));
        }
    }
}

#[test]
fn suspended_calls_stay_open() {
    for &protocol in Protocol::ALL {
        let (seen, _) = run(
            protocol,
            &[
                delta("a", "{\"to\":\"x\"}"),
                start("a"),
                suspended("a", Outcome::ApprovalRequired, None),
                start("b"),
                suspended("b", Outcome::ClientRequired, raw(&json!({"edit": 1}))),
                done("stop"),
            ],
        );
        assert_eq!(seen.finish.as_deref(), Some("tool-calls"));
        assert!(seen.calls.iter().all(|call| call.result.is_none()));
        if protocol == Protocol::UiMessageStream {
            assert_eq!(seen.calls[0].input, Some(json!({"to": "x"})));
            assert_eq!(seen.calls[0].approval, Some((format!("{}.a", "0".repeat(64)), None)));
            assert_eq!(seen.calls[1].input, Some(json!({"edit": 1})));
        } else {
            assert_eq!(seen.calls[1].arguments, "{\"edit\":1}");
        }
    }
}

#[test]
fn answers_in_the_same_run_settle_the_call() {
    for &protocol in Protocol::ALL {
        for (outcome, approved) in [(Outcome::Ok, true), (Outcome::ApprovalDenied, false)] {
            let (seen, _) = run(
                protocol,
                &[
                    start("a"),
                    suspended("a", Outcome::ApprovalRequired, None),
                    text("Waiting."),
                    result("a", raw(&json!({})), outcome, None),
                    done("stop"),
                ],
            );
            assert_eq!((seen.calls[0].failed, seen.finish.as_deref()), (!approved, Some("stop")));
            if protocol == Protocol::UiMessageStream {
                assert_eq!(seen.calls[0].approval, Some((format!("{}.a", "0".repeat(64)), Some(approved))));
            }
        }
    }
}

#[test]
fn a_call_that_never_ran_is_not_shown_as_approved() {
    let ends = |outcome: Outcome, executed: bool| {
        let error = json!({"errorCode": outcome.code(), "safeMessage": "Not now.", "errors": []});
        let ended = event(&json!({
            "type": "tool_call_result", "id": "a", "name": "core__ping", "arguments": {}, "outcome": outcome,
            "error": error, "executed": executed,
        }));
        [start("a"), suspended("a", Outcome::ApprovalRequired, None), ended, done("stop")]
    };
    for &protocol in Protocol::ALL {
        for (outcome, executed, approved) in [
            (Outcome::Cancelled, false, false),
            (Outcome::PolicyDenied, false, false),
            (Outcome::BudgetExceeded, false, false),
            (Outcome::ApprovalExpired, false, false),
            (Outcome::Cancelled, true, true),
            (Outcome::ExecutionError, true, true),
            (Outcome::OutcomeUnknown, false, true),
        ] {
            let (seen, bytes) = run(protocol, &ends(outcome, executed));
            assert!(seen.calls[0].failed, "{bytes}");
            if protocol == Protocol::UiMessageStream {
                assert_eq!(seen.calls[0].approval.as_ref().unwrap().1, Some(approved), "{bytes}");
                assert_eq!(bytes.contains("tool-output-denied"), !approved, "{bytes}");
                assert_eq!(bytes.contains("Not now."), outcome != Outcome::ApprovalExpired, "{bytes}");
            }
        }
    }
}

#[test]
fn unreadable_arguments_and_resumed_calls() {
    for &protocol in Protocol::ALL {
        let (seen, _) = run(protocol, &[start("a"), result("a", None, Outcome::InvalidJson, None), done("stop")]);
        assert!(seen.calls[0].failed && ["", "{}"].contains(&seen.calls[0].arguments.as_str()));
        let (seen, _) = run(protocol, &[result("a", raw(&json!({"x": 1})), Outcome::Ok, raw(&json!(1))), text("ok")]);
        assert_eq!((seen.calls.len(), seen.steps, seen.finish.as_deref()), (1, 2, Some("other")));
    }
}

#[test]
fn a_failed_run_settles_what_it_began() {
    for &protocol in Protocol::ALL {
        let error = event(&json!({"type": "error", "code": "truncated", "message": "The model stream was cut"}));
        let (seen, _) = run(protocol, &[text("x"), delta("a", "{\"x"), delta("b", "{}"), error, done("error")]);
        assert_eq!((seen.error.as_deref(), seen.finish), (Some("The model stream was cut"), None));
        assert!(seen.calls.iter().all(|call| call.failed) && seen.calls.len() == 2);
    }
}

#[test]
fn any_order_of_the_runners_events_gives_a_valid_stream() {
    let mut random = Random(11);
    let outcomes = [Outcome::Ok, Outcome::InvalidJson, Outcome::ApprovalDenied, Outcome::ExecutionError];
    for _ in 0..1_500 {
        let list: Vec<Event> = (0..random.below(40))
            .map(|_| {
                let id = random.pick(&IDS);
                let value = Some(JsonText::from(RawValue::from_string(random.pick(&VALUES).to_owned()).unwrap()));
                match random.below(20) {
                    16 => event(&json!({"type": "reasoning_delta", "text": "Hm"})),
                    17 => event(&json!({"type": "source", "id": id, "url": "https://a.example"})),
                    18 => event(&json!({"type": "file", "media_type": "image/png", "url": "https://a.example/b.png"})),
                    19 => Event::data("d", None, RawValue::from_string("[1]".to_owned()).unwrap()),
                    0 | 1 => text("Hi"),
                    2..=4 => start(id),
                    5..=7 => delta(id, random.pick(&DELTAS)),
                    8..=10 => result(id, value.clone(), random.pick(&outcomes), value),
                    11 => suspended(id, Outcome::ApprovalRequired, None),
                    12 => suspended(id, Outcome::ClientRequired, value),
                    13 => event(&json!({"type": "usage", "input_tokens": u64::MAX, "output_tokens": 1})),
                    14 => event(&json!({"type": "status", "text": "s"})),
                    _ => match random.below(5) {
                        0 => done("stop"),
                        1 => event(&json!({"type": "error", "code": "x", "message": "m"})),
                        _ => result(id, None, random.pick(&outcomes), None),
                    },
                }
            })
            .collect();
        for &protocol in Protocol::ALL {
            run(protocol, &list);
        }
    }
}

/// A result that an earlier call had is marked in each protocol, as data next to the result.
#[test]
fn the_result_of_an_earlier_call_is_marked() {
    let plain = result("t1", None, Outcome::Ok, raw(&json!("7 of p-1")));
    let mut earlier = serde_json::to_value(&plain).unwrap();
    earlier["earlier_call"] = json!("c9");
    let mark = r#"{"toolCallId":"t1","earlierCallId":"c9","message":"The tool did not run again: "#;
    for &protocol in Protocol::ALL {
        let (_, unmarked) = run(protocol, &[start("t1"), plain.clone(), done("stop")]);
        assert!(!unmarked.contains("earlier"), "{protocol:?}: {unmarked}");
        let (_, marked) = run(protocol, &[start("t1"), event(&earlier), done("stop")]);
        assert!(marked.contains(mark) && marked.contains("earlier-call"), "{protocol:?}: {marked}");
    }
}
