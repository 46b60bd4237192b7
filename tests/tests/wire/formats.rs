//! Responses that no well-behaved server sends, in formats other than Chat Completions, decoded whole and in pieces.

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
    // Another message in the same stream: no call of either runs. The same message announced again is harmless, unless
    // its blocks come again.
    let other = json!({ "type": "message_start", "message": { "id": "n" } });
    let used = |id: &str| json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": id, "name": "a", "input": {} } });
    check(&[start.clone(), block(json!({})), other.clone(), used("u"), stop("tool_use")], &["t|a||false"], "error");
    check(
        &[start.clone(), block(json!({})), stop("tool_use"), other, used("u"), stop("tool_use")],
        &["t|a||false"],
        "error",
    );
    check(&[start.clone(), start.clone(), block(json!({})), stop("tool_use")], &["t|a||true"], "tool_calls");
    check(
        &[start.clone(), block(json!({})), start.clone(), used("u"), stop("tool_use")],
        &["t|a||true", "u|a||true"],
        "tool_calls",
    );
    check(
        &[start.clone(), block(json!({})), start.clone(), block(json!({})), stop("tool_use")],
        &["t|a||false"],
        "error",
    );
    // Events after the closing one are ignored; an error before it counts.
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
    // Items of other kinds are not calls.
    check(
        &[event("added", json!({ "type": "mcp_call", "id": "fc", "name": "x" })), last("completed", json!([]))],
        &[],
        "stop",
    );
    // An item that the client has to act on is an error that names it; one that the server answered is not.
    let waits = |kind: &str| json!({ "type": kind, "id": "i", "call_id": "w", "execution": "client" });
    for kind in [
        "apply_patch_call",
        "shell_call",
        "local_shell_call",
        "mcp_approval_request",
        "computer_call",
        "tool_search_call",
    ] {
        for frames in [
            vec![event("done", waits(kind)), last("completed", json!([]))],
            vec![last("completed", json!([waits(kind)]))],
            vec![event("done", waits(kind)), last("completed", json!([waits(kind)]))],
        ] {
            check(&frames, &[], "stop");
        }
        let body = last("completed", json!([waits(kind)]))["response"].to_string();
        let decoded = decode(Format::OpenAiResponses, body.as_bytes(), 7);
        assert!(!decoded.ended_well() && !decoded.is_empty() && decoded.error.unwrap().to_string().contains(kind));
    }
    let answer = json!({ "type": "shell_call_output", "call_id": "w" });
    check(&[last("completed", json!([waits("shell_call"), answer]))], &[], "stop");
    check(&[last("completed", json!([{ "type": "tool_search_call", "execution": "server" }]))], &[], "stop");
    // A custom tool's call is a call; its input is text, so the gate refuses it.
    let custom =
        |input: &str| json!({ "type": "custom_tool_call", "id": "fc", "call_id": "c", "name": "a", "input": input });
    let input = |text: &str| json!({ "type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "fc", "delta": text });
    check(&[last("completed", json!([custom("ls")]))], &["c|a|ls|false"], "tool_calls");
    check(
        &[
            event("added", custom("")),
            input("l"),
            input("s"),
            event("done", custom("ls")),
            last("completed", json!([custom("ls")])),
        ],
        &["c|a|ls|false"],
        "tool_calls",
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

#[test]
fn a_legacy_call_without_anything_is_no_call() {
    let nothing = json!({ "name": "", "arguments": "" });
    let chunk =
        |delta: Value, word: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": word }] });
    let frames =
        [chunk(json!({ "content": "Hi", "function_call": nothing }), json!(null)), chunk(json!({}), json!("stop"))];
    check_format(Format::OpenAiChat, &frames, &[], "stop");
    // A whole document with an empty word has ended; without any word it has not.
    let body = |word: Value| {
        let message = json!({ "content": "Hi", "function_call": nothing });
        json!({ "choices": [{ "index": 0, "message": message, "finish_reason": word }] }).to_string()
    };
    let decoded = decode(Format::OpenAiChat, body(json!("")).as_bytes(), 7);
    assert!(decoded.ended_well() && decoded.calls.is_empty());
    assert!(!decode(Format::OpenAiChat, body(json!(null)).as_bytes(), 7).ended_well());
    // In a stream an empty word does not end the turn.
    check_format(Format::OpenAiChat, &[chunk(json!({ "content": "Hi" }), json!(""))], &[], "truncated");
}

#[test]
fn cached_tokens_and_earlier_passes_are_counted() {
    let start = json!({ "type": "message_start", "message": { "id": "m", "usage": { "input_tokens": 3, "cache_read_input_tokens": 48_000, "output_tokens": 1 } } });
    let pass = |input: u64, output: u64| json!({ "input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": 5 });
    let end = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 7, "cache_creation_input_tokens": 5, "iterations": [pass(100, 20), pass(3, 7)] } });
    let stream = |frames: &[&Value]| {
        let mut stream = String::new();
        frames.iter().for_each(|frame| write!(stream, "data: {frame}\n\n").unwrap());
        stream
    };
    let usage = |body: String| decode(Format::Anthropic, body.as_bytes(), 7).usage.unwrap();
    // A stream that breaks off after its start was paid for too.
    let broken = usage(stream(&[&start]));
    assert_eq!((broken.input_tokens, broken.total_input(), broken.total_output()), (3, 48_003, 1));
    let whole = usage(stream(&[&start, &end]));
    assert_eq!((whole.total_input(), whole.total_output(), whole.total()), (48_113, 27, 48_140));
}

#[test]
fn an_empty_answer_is_recognised() {
    let answer = |text: &str| json!({ "message": { "content": text }, "done": true }).to_string();
    assert!(decode(Format::Ollama, answer(" \n").as_bytes(), 7).is_empty());
    assert!(!decode(Format::Ollama, answer("Hi").as_bytes(), 7).is_empty());
    assert!(!decode(Format::Ollama, b"", 7).is_empty());
}
