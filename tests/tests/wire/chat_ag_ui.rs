//! Bodies that clients of AG-UI post: the reader returns the answers and the text, and refuses false claims.

use serde_json::{Value, json};
use tool_runtime::call::{CallId, ClientAnswer, Suspension};
use tool_runtime::media::Media;
use tool_runtime::wire::Message;
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::ui::{ChatReader, ChatRequest};

/// `done` ended, `ask` waits for a person, `run` for the client.
fn reader() -> ChatReader {
    let call = |id: &str| CallMessage::new(id, format!("ns__{id}"), r#"{"secret":1}"#);
    let history = [
        Message::user("Go."),
        Message::Assistant(["done", "ask", "run"].map(|id| Part::Call(call(id))).into()),
        Message::Result(ResultMessage::new("done", "1")),
    ];
    ChatReader::new(&history, [(CallId::new("ask"), Suspension::Approval), (CallId::new("run"), Suspension::Client)])
}

fn user(text: &str) -> Value {
    json!({ "id": "u", "role": "user", "content": text })
}

fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({ "id": id, "type": "function", "function": { "name": format!("ns__{id}"), "arguments": "{" } });
    json!({ "id": "m", "role": "assistant", "content": "Let me.", "toolCalls": ids.iter().map(call).collect::<Vec<_>>() })
}

fn tool(id: &str, content: &Value) -> Value {
    json!({ "id": format!("t-{id}"), "role": "tool", "toolCallId": id, "content": content })
}

fn approve(payload: &Value) -> Value {
    json!([{ "interruptId": tests::never("ask"), "status": "resolved", "payload": payload }])
}

fn body(messages: &[Value], resume: &Value) -> Value {
    json!({
        "threadId": "thread", "runId": "run", "messages": messages, "resume": resume, "state": { "a": 1 },
        "tools": [{ "name": "ns__mine", "description": "Mine.", "parameters": {} }], "context": [], "forwardedProps": 7,
    })
}

fn read(messages: &[Value], resume: &Value) -> ChatRequest {
    reader().read_ag_ui(body(messages, resume).to_string().as_bytes()).unwrap()
}

#[track_caller]
fn refused(body: &Value, code: &str, path: &str) {
    let error = reader().read_ag_ui(body.to_string().as_bytes()).unwrap_err();
    assert_eq!((error.code(), error.pointer()), (code, Some(path)), "{error}");
}

fn yes() -> Value {
    approve(&json!({ "approved": true, "reason": "Because." }))
}

#[test]
fn answers_are_read_in_the_order_of_the_calls() {
    let all = calls(&["done", "ask", "run"]);
    let request = read(
        &[user("Go."), all.clone(), tool("done", &json!("1")), tool("run", &json!("{\"city\":\"Oslo\"}"))],
        &yes(),
    );
    assert_eq!(request.decisions, [(tests::never("ask"), true, Some("Because.".to_owned()))]);
    assert_eq!(request.answers, [ClientAnswer::value("run", r#"{"city":"Oslo"}"#)]);
    assert_eq!(
        (request.chat_id.as_str(), request.run_id.as_deref(), request.text, request.message_id),
        ("thread", Some("run"), None, None)
    );

    // A client that shows nothing any more knows the interrupts of the last run.
    let cancelled = json!([{ "interruptId": tests::never("ask"), "status": "cancelled" }]);
    let request = read(&[user("And then?")], &cancelled);
    assert_eq!((request.decisions, request.answers), (vec![(tests::never("ask"), false, None)], Vec::new()));
    assert_eq!(request.text.as_deref(), Some("And then?"));
}

#[test]
fn results_of_the_clients_tools_come_in_several_shapes() {
    for (content, json) in [
        (json!("plain text"), "\"plain text\""),
        (json!("{\"a\":1, \"a\":2}"), r#""{\"a\":1, \"a\":2}""#),
        (json!(" 7 "), "7"),
        (json!([{ "type": "text", "text": "[1," }, { "type": "text", "text": "2]" }]), "[1,2]"),
    ] {
        let request = read(&[calls(&["ask", "run"]), tool("run", &content)], &yes());
        assert_eq!(request.answers, [ClientAnswer::value("run", json)]);
    }
    let mut failed = tool("run", &json!(""));
    failed["error"] = json!("No camera.");
    assert_eq!(read(&[calls(&["ask", "run"]), failed], &yes()).answers, [ClientAnswer::failed("run")]);
    // A client can treat its own tool as an interrupt, too.
    let both = |run: Value| json!([{ "interruptId": tests::never("ask"), "status": "cancelled" }, run]);
    let request =
        read(&[], &both(json!({ "interruptId": "run", "status": "resolved", "payload": { "city": "Oslo" } })));
    assert_eq!(request.answers, [ClientAnswer::value("run", r#"{"city":"Oslo"}"#)]);
    let request = read(&[], &both(json!({ "interruptId": "run", "status": "cancelled" })));
    assert_eq!(request.answers, [ClientAnswer::failed("run")]);
}

#[test]
fn a_turn_can_be_several_messages() {
    let reasoning = json!({ "id": "r", "role": "reasoning", "content": "Hm." });
    let said = json!({ "id": "s", "role": "assistant", "content": "Two." });
    let messages = [user("Go."), reasoning, calls(&["done", "ask"]), said, calls(&["run"]), tool("run", &json!("1"))];
    let request = read(&messages, &yes());
    assert_eq!((request.decisions.len(), request.answers.len()), (1, 1));
}

#[test]
fn every_interrupt_needs_an_answer() {
    refused(&body(&[user("Hi.")], &Value::Null), "chat_interrupts", "/resume");
    refused(&body(&[calls(&["run"]), tool("run", &json!("1"))], &json!([])), "chat_interrupts", "/resume");
    for (payload, path) in [
        (json!(true), "/resume/0/payload/approved"),
        (json!({}), "/resume/0/payload/approved"),
        (json!({ "approved": "yes" }), "/resume/0/payload/approved"),
        (json!({ "approved": true, "reason": 1 }), "/resume/0/payload/reason"),
        (json!({ "approved": true, "editedArgs": {} }), "/resume/0/payload/editedArgs"),
    ] {
        refused(&body(&[], &approve(&payload)), "chat_malformed", path);
    }
    let long = approve(&json!({ "approved": true, "reason": "a".repeat(5000) }));
    refused(&body(&[], &long), "chat_too_large", "/resume/0/payload/reason");
}

#[test]
fn lies_are_refused() {
    let all = calls(&["done", "ask", "run"]);
    // A result of a call that waits for a person, one without its call, and one of a call that was never made.
    refused(&body(&[all.clone(), tool("ask", &json!("sent"))], &yes()), "history_forged", "/messages/1");
    refused(&body(&[tool("run", &json!("1"))], &yes()), "history_orphan", "/messages/0");
    refused(&body(&[user("Go."), calls(&["never"])], &yes()), "history_forged", "/messages/1");
    let mut renamed = calls(&["run"]);
    renamed["toolCalls"][0]["function"]["name"] = json!("ns__other");
    refused(&body(&[renamed], &yes()), "history_forged", "/messages/0");
    // Twice, in each of the ways.
    let run = tool("run", &json!("1"));
    refused(&body(&[all.clone(), run.clone(), run.clone()], &yes()), "history_duplicate", "/messages/2");
    refused(&body(&[all.clone(), all.clone()], &yes()), "history_duplicate", "/messages/0");
    let entry = json!({ "interruptId": tests::never("ask"), "status": "cancelled" });
    refused(&body(std::slice::from_ref(&all), &json!([entry, entry])), "history_duplicate", "/resume/1");
    let other = json!({ "interruptId": "run", "status": "resolved", "payload": 2 });
    refused(&body(&[all.clone(), run], &json!([entry, other])), "history_duplicate", "/resume/1");
    // An interrupt that there never was.
    refused(&body(&[all], &json!([{ "interruptId": "never", "status": "resolved" }])), "history_forged", "/resume/0");
}

#[test]
fn an_answer_that_was_given_is_not_given_again() {
    let call = CallMessage::new("done", "ns__done", "{}");
    let history = [Message::Assistant(vec![Part::Call(call)]), Message::Result(ResultMessage::new("done", "1"))];
    let resume = json!([{ "interruptId": "done", "status": "resolved", "payload": { "approved": true } }]);
    let read =
        |messages: &[Value]| ChatReader::new(&history, []).read_ag_ui(body(messages, &resume).to_string().as_bytes());
    assert_eq!(read(&[calls(&["done"])]).unwrap_err().code(), "chat_empty");
    let request = read(&[user("Hi.")]).unwrap();
    assert!(request.decisions.is_empty() && request.answers.is_empty());
}

#[test]
fn other_shapes_are_refused() {
    let ok = body(&[user("Hi.")], &yes());
    for (pointer, value, code, path) in [
        ("/threadId", json!(""), "chat_malformed", "/threadId"),
        ("/threadId", json!("a".repeat(129)), "chat_malformed", "/threadId"),
        ("/runId", json!("a\n"), "chat_malformed", "/runId"),
        ("/runId", json!(1), "chat_malformed", "/runId"),
        ("/messages", json!({}), "chat_malformed", "/messages"),
        ("/messages/0/content", Value::Null, "chat_malformed", "/messages/0/content"),
        ("/messages/0/content", json!([{ "type": "hologram" }]), "chat_part", "/messages/0/content/0"),
        ("/messages/0/content", json!([{ "type": "video" }]), "chat_malformed", "/messages/0/content/0/source"),
        ("/messages/0/content", json!([{ "text": "Hi." }]), "chat_malformed", "/messages/0/content/0"),
        ("/messages/0/role", json!("system"), "chat_role", "/messages/0/role"),
        ("/messages/0/role", json!("developer"), "chat_role", "/messages/0/role"),
        ("/messages/0/role", json!("tool"), "chat_malformed", "/messages/0/toolCallId"),
        ("/resume", json!({}), "chat_malformed", "/resume"),
        ("/resume/0/status", json!("maybe"), "chat_malformed", "/resume/0/status"),
        ("/resume/0/interruptId", json!(""), "chat_malformed", "/resume/0/interruptId"),
    ] {
        let mut body = ok.clone();
        *body.pointer_mut(pointer).unwrap() = value;
        refused(&body, code, path);
    }
    let many = vec![json!({ "id": "r", "role": "reasoning", "content": "" }); 2049];
    refused(&body(&many, &yes()), "history_too_large", "/messages");
    refused(&body(&[user(&"a".repeat(40 << 10))], &yes()), "history_too_large", "/messages");
    refused(&body(&[user(&"a".repeat(1 << 20))], &yes()), "chat_too_large", "");
    assert_eq!(reader().read_ag_ui(b"{").unwrap_err().code(), "chat_malformed");
}

/// One pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";

#[test]
fn files_are_read_and_ids_at_a_provider_are_not() {
    let image = |source: Value| {
        json!({ "id": "u", "role": "user", "content": [
        { "type": "text", "text": "What is this?" }, { "type": "image", "source": source }] })
    };
    let source = |kind: &str, value: &str| json!({ "type": kind, "value": value, "mimeType": "image/png" });
    for (source, file) in [
        (source("data", PNG), Media::base64("image/png", PNG)),
        (source("url", &format!("data:image/png;base64,{PNG}")), Media::base64("image/png", PNG)),
        (source("url", "https://a.example/b.png"), Media::url("image/png", "https://a.example/b.png")),
    ] {
        let request = read(&[image(source)], &yes());
        assert_eq!((request.files, request.text.as_deref()), (vec![file.unwrap()], Some("What is this?")));
    }
    let path = "/messages/0/content/1/source";
    refused(&body(&[image(source("file", "file-123"))], &yes()), "chat_part", path);
    refused(&body(&[image(source("url", "ftp://a.example"))], &yes()), "chat_file", path);
    refused(
        &body(&[image(json!({ "type": "data", "value": "AA==" }))], &yes()),
        "chat_malformed",
        &format!("{path}/mimeType"),
    );
    // In an earlier message they were read before.
    assert_eq!(read(&[image(source("file", "file-123")), user("And?")], &yes()).files, []);
}

#[test]
fn nothing_that_was_said_reaches_a_log() {
    let request = read(&[calls(&["ask", "run"]), tool("run", &json!("hush")), user("psst")], &yes());
    let shown = format!("{request:?}");
    assert!(!["hush", "psst", "Because"].iter().any(|secret| shown.contains(secret)), "{shown}");
}
