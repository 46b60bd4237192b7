//! Responses of the other formats that no well-behaved server sends, decoded in every cut.

#![allow(clippy::unwrap_used)] // A test that cannot read its own data has nothing to say.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tests::wire::{decode, result};
use tool_runtime::wire::Format;

/// Lines of data, their result in short, and the finish.
#[track_caller]
fn check_format(format: Format, frames: &[Value], expected: &[&str], finish: &str) {
    let mut body = String::new();
    for frame in frames {
        let prefix = if format == Format::Ollama { "" } else { "data: " };
        let end = if format == Format::Ollama { "\n" } else { "\n\n" };
        write!(body, "{prefix}{frame}{end}").unwrap();
    }
    for cut in [usize::MAX, 1, 7] {
        let value = result(&decode(format, body.as_bytes(), cut));
        let calls = value["calls"].as_array().unwrap().iter();
        let got: Vec<String> = calls
            .map(|call| {
                let arguments = call
                    .get("arguments_raw")
                    .and_then(Value::as_str)
                    .map_or_else(|| call["arguments"].to_string(), str::to_owned);
                let id = call["id"].as_str().unwrap_or("~");
                format!("{id}|{}|{arguments}|{}", call["name"].as_str().unwrap(), call["executable"])
            })
            .collect();
        assert_eq!(
            (got.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), value["finish"].as_str().unwrap()),
            (expected, finish),
            "{body}"
        );
    }
}

#[test]
fn adversarial_anthropic_streams() {
    let check = |frames: &[Value], expected: &[&str], finish| check_format(Format::Anthropic, frames, expected, finish);
    let start = json!({ "type": "message_start", "message": { "id": "m" } });
    let block = |input: Value| json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "t", "name": "a", "input": input } });
    let delta = |text: &str| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": text } });
    let stop = |reason: &str| json!({ "type": "message_delta", "delta": { "stop_reason": reason } });
    let message_stop = json!({ "type": "message_stop" });
    // A2: deltas win over the start block's input; a string there is JSON text.
    check(
        &[start.clone(), block(json!({ "n": 1 })), delta("{\"n\":2}"), stop("tool_use")],
        &["t|a|{\"n\":2}|true"],
        "tool_calls",
    );
    check(
        &[start.clone(), block(json!("{\"n\":1}")), delta(""), stop("tool_use")],
        &["t|a|{\"n\":1}|true"],
        "tool_calls",
    );
    check(&[start.clone(), block(json!({ "n": 1 }))], &["t|a|{\"n\":1}|false"], "truncated");
    // A3: the stop reason decides, not the closing event.
    check(&[start.clone(), block(json!({})), message_stop.clone()], &["t|a||false"], "truncated");
    check(&[start.clone(), block(json!({})), stop("model_context_window_exceeded")], &["t|a||false"], "length");
    check(&[start.clone(), block(json!({})), stop("pause_turn")], &["t|a||false"], "pause");
    check(&[start.clone(), block(json!({})), stop("refusal"), message_stop.clone()], &["t|a||false"], "refusal");
    check(&[start.clone(), block(json!({})), stop("later_word")], &["t|a||false"], "error");
    // A4: a block before the start.
    check(&[block(json!({})), stop("tool_use")], &[], "error");
    // After the closing event nothing counts; an error before it does.
    check(
        &[start.clone(), block(json!({})), stop("tool_use"), message_stop, json!({ "type": "error" })],
        &["t|a||true"],
        "tool_calls",
    );
    check(
        &[start, block(json!({})), stop("tool_use"), json!({ "error": { "message": "m" } })],
        &["t|a||false"],
        "error",
    );
}

#[test]
fn adversarial_responses_streams() {
    let check =
        |frames: &[Value], expected: &[&str], finish| check_format(Format::OpenAiResponses, frames, expected, finish);
    let item = |arguments: Value| json!({ "type": "function_call", "id": "fc", "call_id": "c", "name": "a", "arguments": arguments });
    let event = |kind: &str, item: Value| json!({ "type": format!("response.output_item.{kind}"), "output_index": 0, "item": item });
    let delta = |text: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": text });
    let last = |status: &str, output: Value| json!({ "type": format!("response.{status}"), "response": { "status": status, "output": output, "incomplete_details": { "reason": "content_filter" } } });
    let completed = last("completed", json!([item(json!("{\"n\":9}"))]));
    // S2: any one of the forms is enough, the done events win.
    check(std::slice::from_ref(&completed), &["c|a|{\"n\":9}|true"], "tool_calls");
    check(&[event("added", item(json!(""))), delta("{}"), completed.clone()], &["c|a|{}|true"], "tool_calls");
    check(
        &[
            event("added", item(json!(""))),
            delta("{\"n\":1}"),
            event("done", item(json!("{\"n\":2}"))),
            completed.clone(),
        ],
        &["c|a|{\"n\":2}|true"],
        "tool_calls",
    );
    check(&[event("done", item(json!({ "n": 3 }))), completed.clone()], &["c|a|{\"n\":3}|true"], "tool_calls");
    check(
        &[delta("{\"n\":"), delta("4}"), event("done", item(json!(null))), completed.clone()],
        &["c|a|{\"n\":4}|true"],
        "tool_calls",
    );
    // Items of other kinds are no calls.
    check(
        &[event("added", json!({ "type": "mcp_call", "id": "fc", "name": "x" })), last("completed", json!([]))],
        &[],
        "stop",
    );
    // S3: only the completed event ends well.
    check(&[event("done", item(json!("{}")))], &["c|a|{}|false"], "truncated");
    check(&[event("done", item(json!("{}"))), last("incomplete", json!([]))], &["c|a|{}|false"], "content_filter");
    check(&[event("done", item(json!("{}"))), last("failed", json!([]))], &["c|a|{}|false"], "error");
    check(&[event("done", item(json!("{}"))), last("in_progress", json!([]))], &["c|a|{}|false"], "truncated");
    check(
        &[event("done", item(json!("{}"))), json!({ "error": { "message": "m" } }), completed],
        &["c|a|{}|false"],
        "error",
    );
}

#[test]
fn adversarial_ollama_streams() {
    let check = |frames: &[Value], expected: &[&str], finish| check_format(Format::Ollama, frames, expected, finish);
    let calls = |calls: Value, done: bool| json!({ "message": { "content": "", "tool_calls": calls }, "done": done });
    let call = |id: Value, arguments: Value| json!({ "id": id, "function": { "name": "a", "arguments": arguments } });
    let done = |reason: &str| json!({ "done": true, "done_reason": reason });
    check(
        &[calls(json!([call(json!("x"), json!({})), call(json!("x"), json!({}))]), false), done("stop")],
        &["x|a|{}|true", "~|a|{}|true"],
        "tool_calls",
    );
    check(&[calls(json!([call(json!(null), json!(null))]), true)], &["~|a||true"], "tool_calls");
    check(&[calls(json!([call(json!(""), json!([1]))]), true)], &["~|a|[1]|false"], "tool_calls");
    check(&[calls(json!([call(json!("x"), json!({}))]), false), done("length")], &["x|a|{}|false"], "length");
    check(
        &[calls(json!([call(json!("x"), json!({}))]), true), json!({ "error": "late" })],
        &["x|a|{}|true"],
        "tool_calls",
    );
    check(&[json!([])], &[], "error");
    let cut = decode(Format::Ollama, b"\r\n\n{\"message\":{\"content\":\"a\"},\"done\":false}\r\n{\"done\":tr", 3);
    assert_eq!((cut.text.as_str(), result(&cut)["finish"].as_str()), ("a", Some("truncated")));
    let unended = decode(Format::Ollama, b"{\"message\":{\"content\":\"a\"},\"done\":true}", 3);
    assert!(unended.ended_well());
}
