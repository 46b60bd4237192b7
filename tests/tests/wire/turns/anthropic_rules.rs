//! Anthropic Messages: parts that the provider would refuse are left out with a reported loss, and bad blocks fail the
//! turn.

use serde_json::{Value, json};
use tests::wire::decode;
use tool_runtime::wire::history::ResultMessage;
use tool_runtime::wire::{FinishReason, Format, Message};

use super::anthropic::{CUTS, history, message, sent, stream, whole};
use super::{body, losses};

#[test]
fn thinking_without_its_end_or_its_signature_does_not_go_back() {
    let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let thinks = json!({ "type": "thinking_delta", "thinking": "Hm." });
    let signs = json!({ "type": "signature_delta", "signature": "s" });
    let text = json!({ "type": "text", "text": "Hi" });
    let unsigned = message(&[(start.clone(), std::slice::from_ref(&thinks)), (text.clone(), &[])], "end_turn");
    let signed = message(&[(start.clone(), &[thinks.clone(), signs.clone()])], "end_turn");
    let (cut, _) = signed.split_once("event: content_block_stop").unwrap();
    let whole = whole(&json!([{ "type": "thinking", "thinking": "Hm." }, text]), "end_turn");
    for (body, kept) in [(unsigned.as_str(), json!([text])), (cut, Value::Null), (&whole, json!([text]))] {
        for size in CUTS {
            let history = history(&decode(Format::Anthropic, body.as_bytes(), size));
            assert_eq!(sent(&history), kept);
            assert_eq!(losses(Format::Anthropic, &history, Some("m")), ["reasoning at /1"]);
        }
    }
    // The end of the message ends its blocks too.
    let unended =
        signed.replace("event: content_block_stop\ndata: {\"index\":0,\"type\":\"content_block_stop\"}\n\n", "");
    assert_ne!(signed, unended);
    let parts = decode(Format::Anthropic, unended.as_bytes(), 7).parts();
    assert!(
        parts[0].provider_state().is_some_and(|provider_state| provider_state.json().contains(r#""signature":"s""#))
    );
}

#[test]
fn a_message_never_ends_with_thinking() {
    let thinks = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" });
    let text = json!({ "type": "text", "text": "Hi" });
    for (content, last) in [(json!([text, thinks, thinks]), json!([text])), (json!([thinks]), Value::Null)] {
        let body = whole(&content, "pause_turn");
        let decoded = decode(Format::Anthropic, body.as_bytes(), usize::MAX);
        assert_eq!(decoded.finish, FinishReason::Pause);
        let mut history = history(&decoded);
        let lost = |history: &[Message]| {
            let losses = losses(Format::Anthropic, history, Some("m"));
            assert!(losses.iter().all(|loss| loss == "reasoning without an answer at /1"), "{losses:?}");
            losses.len()
        };
        let thoughts = content.as_array().unwrap().iter().filter(|block| **block == thinks).count();
        assert_eq!((sent(&history), lost(&history)), (last.clone(), thoughts), "the user follows");
        history.pop();
        assert_eq!((sent(&history), lost(&history)), (last.clone(), thoughts), "nothing follows");
        history.push(Message::assistant("And more."));
        let mut both = last.as_array().cloned().unwrap_or_default();
        both.push(json!({ "type": "text", "text": "And more." }));
        assert_eq!((sent(&history), lost(&history)), (both.into(), thoughts), "the model continued without it");
    }
}

/// "Refusals and fallback", continuing the conversation: which blocks of a model that declined go back.
#[test]
fn of_a_model_that_declined_text_and_answered_server_calls_go_back() {
    let thinks = |signature: &str| json!({ "type": "thinking", "thinking": "Hm.", "signature": signature });
    let redacted = json!({ "type": "redacted_thinking", "data": "d" });
    let connector = json!({ "type": "connector_text", "text": "So" });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let used = |id: &str| json!({ "type": "tool_use", "id": id, "name": "a", "input": {} });
    let search = |id: &str| json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} });
    let found = |id: &str| json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] });
    let fallback = |to: &str| json!({ "type": "fallback", "from": { "model": "a" }, "to": { "model": to }, "trigger": { "type": "refusal" } });
    let content = json!([
        thinks("1"),
        text("One"),
        used("t1"),
        fallback("b"),
        redacted,
        connector,
        search("s"),
        found("s"),
        search("r"),
        text("Two"),
        used("t2"),
        fallback("m"),
        thinks("2"),
        text("Three"),
        used("t3"),
    ]);
    let kept = json!([
        text("One"),
        fallback("b"),
        search("s"),
        found("s"),
        text("Two"),
        fallback("m"),
        thinks("2"),
        text("Three"),
        used("t3"),
    ]);
    let blocks: Vec<_> = content.as_array().unwrap().iter().map(|block| (block.clone(), &[][..])).collect();
    for body in [whole(&content, "tool_use"), message(&blocks, "tool_use")] {
        for cut in CUTS {
            let decoded = decode(Format::Anthropic, body.as_bytes(), cut);
            let calls: Vec<_> = decoded.calls.iter().map(|call| call.call.id.as_str()).collect();
            assert_eq!(
                (calls, decoded.finish),
                (vec!["t3"], FinishReason::ToolCalls),
                "what declined has no calls to run"
            );
            let history = history(&decoded);
            assert_eq!(sent(&history), kept);
            let declined = "parts of a model that declined at /1";
            assert_eq!(losses(Format::Anthropic, &history, Some("m")), [declined; 4]);
            let results = answered(&history);
            assert_eq!(results, ["t3"]);
        }
    }
    // Without a call of the model that took over, none is left to run.
    let content = json!([used("t1"), fallback("m"), text("No.")]);
    let decoded = decode(Format::Anthropic, whole(&content, "end_turn").as_bytes(), 7);
    assert_eq!((decoded.calls.len(), decoded.finish), (0, FinishReason::Stop));
    assert_eq!(sent(&history(&decoded)), json!([fallback("m"), text("No.")]));
}

/// The calls that the messages of the user answer.
fn answered(history: &[Message]) -> Vec<String> {
    let request = body(Format::Anthropic, history, Some("m"));
    let messages = request["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    let blocks = messages.flat_map(|message| message["content"].as_array().unwrap());
    blocks.filter_map(|block| block["tool_use_id"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_server_call_waits_for_its_result_until_the_user_writes() {
    let call = |id: &str| json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} });
    let result = |id: &str| json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] });
    let text = json!({ "type": "text", "text": "Hi" });
    let turn = |content: Value, reason: &str| {
        Message::Assistant(decode(Format::Anthropic, whole(&content, reason).as_bytes(), 7).parts())
    };
    let paused = || turn(json!([text, call("s"), call("r"), result("r")]), "pause_turn");
    let lost = "a call of a server tool without its result at /1";
    let ask = || Message::user("Hello?");
    // Paused: back as it is.
    let history = [ask(), paused()];
    assert_eq!(sent(&history), json!([text, call("s"), call("r"), result("r")]));
    // The provider continued, and delivered the result.
    let history = [ask(), paused(), turn(json!([result("s"), text]), "end_turn"), ask()];
    assert_eq!(sent(&history), json!([text, call("s"), call("r"), result("r"), result("s"), text]));
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), [""; 0]);
    // The user wrote before it did.
    let history = [ask(), paused(), ask()];
    assert_eq!(sent(&history), json!([text, call("r"), result("r")]));
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), [lost]);
    // Nothing else was said: no empty message.
    let history = [ask(), turn(json!([call("s")]), "max_tokens"), ask()];
    assert_eq!(body(Format::Anthropic, &history, Some("m"))["messages"].as_array().unwrap().len(), 1);
    // Code that waits for a result of ours: both go back, and the container with them.
    let code =
        json!({ "type": "server_tool_use", "id": "s", "name": "code_execution", "input": { "code": "await a()" } });
    let used = json!({ "type": "tool_use", "id": "t", "name": "a", "input": {}, "caller": { "type": "code_execution_20250825", "tool_id": "s" } });
    let mut history = vec![ask(), turn(json!([code, used]), "tool_use"), Message::Result(ResultMessage::new("t", "1"))];
    assert_eq!(sent(&history), json!([code, used]));
    history.push(ask());
    assert_eq!(sent(&history), json!([{ "type": "tool_use", "id": "t", "name": "a", "input": {} }]));
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), [lost, "the code that made a call at /1"]);
}

#[test]
fn a_server_call_that_broke_off_is_left_out() {
    let deltas = [json!({ "type": "input_json_delta", "partial_json": "{\"query\":\"x" })];
    let call = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let body = message(&[(call, &deltas)], "max_tokens");
    for cut in CUTS {
        let decoded = decode(Format::Anthropic, body.as_bytes(), cut);
        assert_eq!(decoded.finish, FinishReason::Length);
        let history = [Message::Assistant(decoded.parts())];
        assert_eq!(sent(&history), Value::Null);
        assert_eq!(losses(Format::Anthropic, &history, Some("m")), ["a call of a server tool that broke off at /0"]);
    }
}

#[test]
fn what_another_model_sealed_is_left_out() {
    let content = json!([
        { "type": "thinking", "thinking": "Hm.", "signature": "s" },
        { "type": "redacted_thinking", "data": "d" },
        { "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} },
        { "type": "web_search_tool_result", "tool_use_id": "s", "content": [] },
        { "type": "text", "text": "Hi", "citations": null },
    ]);
    let history = history(&decode(Format::Anthropic, whole(&content, "end_turn").as_bytes(), usize::MAX));
    let request = body(Format::Anthropic, &history, Some("another"));
    assert_eq!(request["messages"][1]["content"], json!(content.as_array().unwrap()[2..]));
    assert_eq!(losses(Format::Anthropic, &history, Some("another")), ["reasoning at /1", "reasoning at /1"]);
    let provider_state = "data that only another provider or model understands at /1";
    let expected = ["reasoning at /1", "reasoning at /1", provider_state, provider_state, provider_state];
    assert_eq!(losses(Format::OpenAiResponses, &history, Some("another")), expected);
}

#[test]
fn bad_blocks_are_refused() {
    let start = r#"{"type":"message_start","message":{"id":"m","content":[]}}"#;
    let kind = |body: &str| {
        let errors = CUTS.map(|cut| decode(Format::Anthropic, body.as_bytes(), cut).error.map(|error| error.code()));
        assert!(errors.iter().all(|error| *error == errors[0]));
        errors[0]
    };
    for block in ["5", "null", "[]", "\"text\""] {
        let event = format!(
            "data: {start}\n\ndata: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{block}}}\n\n"
        );
        assert_eq!(kind(&event), Some("protocol_violation"), "{block}");
        let body = format!(r#"{{"type":"message","content":[{block}],"stop_reason":"end_turn"}}"#);
        assert_eq!(kind(&body), Some("protocol_violation"), "{block}");
    }
    // Indexes may leave gaps, but a second call under one index could be the first one again.
    let used = |id: &str, index: i64| json!({ "type": "content_block_start", "index": index, "content_block": { "type": "tool_use", "id": id, "name": "a", "input": {} } });
    let ended = json!({ "type": "content_block_stop", "index": 7 });
    let begin: Value = serde_json::from_str(start).unwrap();
    let reason = json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } });
    let twice = stream(&[begin.clone(), used("t", 7), used("u", 7), reason.clone()]);
    assert_eq!(kind(&twice), Some("protocol_violation"));
    assert_eq!(kind(&stream(&[begin.clone(), used("t", 7), ended, used("u", 7), used("v", -4), reason])), None);
    // The provider state was put together at the end of its block.
    let thinking = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking" } });
    let stop = json!({ "type": "content_block_stop", "index": 0 });
    let late =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "s" } });
    assert_eq!(kind(&stream(&[begin, thinking, stop, late])), Some("protocol_violation"));
}

#[test]
fn citations_without_text_are_reported() {
    let citation = json!({ "type": "char_location", "cited_text": "Hi", "document_title": "D" });
    let content = json!([{ "type": "text", "text": "", "citations": [citation, 5] }]);
    let history = history(&decode(Format::Anthropic, whole(&content, "end_turn").as_bytes(), usize::MAX));
    assert_eq!(sent(&history), Value::Null);
    assert_eq!(losses(Format::Anthropic, &history, Some("m")), ["a citation at /1"]);
}

#[test]
fn what_is_carried_is_bounded() {
    let data = "x".repeat(9 << 20);
    let result = json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": data });
    let input = json!({ "type": "input_json_delta", "partial_json": format!("\"{data}\"") });
    let streamed = message(&[(json!({ "type": "server_tool_use", "id": "s", "input": {} }), &[input])], "end_turn");
    for body in [whole(&json!([result]), "end_turn"), streamed] {
        let mut decoder = Format::Anthropic.decoder().with_max_frame_bytes(16 << 20);
        decoder.push(body.as_bytes());
        assert_eq!(decoder.finish().error.unwrap().code(), "limit_exceeded");
    }
}
