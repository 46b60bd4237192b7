//! The bytes of a turn for a chat UI: readers that keep up, that are slow, and that hang up.

use serde_json::json;
use tool_runtime::agent::{Input, UiStream};
use tool_runtime::call::Decider;
use tool_runtime::media::Media;
use tool_runtime::wire::history::{Citation, Part};
use tool_runtime::wire::ui::Protocol;

use super::*;

async fn read(mut stream: UiStream) -> String {
    let mut all = Vec::new();
    while let Some(bytes) = stream.chunk().await {
        assert!(!bytes.is_empty());
        all.extend(bytes);
    }
    String::from_utf8(all).expect("UTF-8")
}

/// The kinds of the frames, in order.
fn kinds(text: &str) -> Vec<String> {
    let frames = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let kind = |data: &str| {
        let frame: serde_json::Value = serde_json::from_str(data).expect("JSON");
        frame["type"].as_str().expect("a type").to_owned()
    };
    frames.map(kind).collect()
}

fn waits() -> ScriptedTurn {
    ScriptedTurn::call("s", "agent__send", r#"{"to":"bob","code":"1234"}"#)
}

#[tokio::test]
async fn each_response_of_a_paused_turn_is_a_stream() {
    let rig = rig([waits(), ScriptedTurn::text("Sent.")]);
    let mut conversation = rig.converse();
    let first = conversation.ui_stream(Protocol::UiMessageStream, "msg_1");
    // The turn wakes a reader that runs at the same time.
    let reader = tokio::spawn(read(first));
    conversation.send("Go.").await;
    let first = reader.await.expect("read");
    assert!(first.contains(r#""messageId":"msg_1""#) && first.trim_end().ends_with("[DONE]"), "{first}");
    assert!(kinds(&first).contains(&"tool-approval-request".to_owned()), "{first}");
    assert!(!first.contains("1234"));

    let second = conversation.ui_stream_resuming(Protocol::UiMessageStream, "msg_1");
    let input = Input::new().decide(&tests::question(&conversation, "s"), ApprovalDecision::Approve, &grace());
    assert!(matches!(conversation.receive(input).await, Ok(TurnOutcome::Answered { .. })));
    let second = read(second).await;
    let kinds = kinds(&second);
    assert_eq!(kinds[..2], ["start", "tool-output-available"], "the call is updated in place: {second}");
    assert!(!kinds.contains(&"tool-input-start".to_owned()), "{second}");
    assert!(second.contains("Sent.") && second.trim_end().ends_with("[DONE]"), "{second}");

    let refused = conversation.ui_stream_resuming(Protocol::UiMessageStream, "msg_1");
    assert!(
        conversation
            .receive(Input::new().decide(&tests::question(&conversation, "s"), ApprovalDecision::Approve, &grace()))
            .await
            .is_err()
    );
    let refused = read(refused).await;
    assert!(refused.contains("\"type\":\"error\"") && refused.trim_end().ends_with("[DONE]"), "{refused}");
}

/// One request of a service: restore, read the body of the client, stream the turn, save.
#[tokio::test]
async fn a_chat_client_decides_in_a_later_request() {
    let rig = rig([waits(), ScriptedTurn::text("Sent.")]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    // The `approvalId` of the stream.
    let asked = tests::question(&conversation, "s").to_string();
    let saved = serde_json::to_string(&conversation.save().await.expect("saved")).expect("JSON");
    drop(conversation);

    let body = |id: &str, approval: &str| {
        let approval = serde_json::json!({"id": approval, "approved": true});
        let part = serde_json::json!({"type": "tool-agent__send", "toolCallId": id, "state": "approval-responded",
            "input": {"to": "bob", "code": "[sensitive]"}, "approval": approval});
        let user = serde_json::json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Go."}]});
        let assistant = serde_json::json!({"id": "msg_1", "role": "assistant", "parts": [part]});
        let body = serde_json::json!({"id": "chat_1", "trigger": "submit-message", "messages": [user, assistant]});
        serde_json::to_vec(&body).expect("JSON")
    };
    let saved: SavedConversation = serde_json::from_str(&saved).expect("a document");
    let restored = rig.agent().restore(&rig.runner, rig.options(), &saved).await;
    let mut conversation = restored.expect("restored");
    let never = tests::never("another").to_string();
    for (id, approval) in [("another", &*never), ("another", &*asked), ("s", &*never), ("s", "s")] {
        let read = conversation.chat_reader().read(&body(id, approval));
        assert!(read.is_err(), "a client cannot decide what was never asked: {id}, {approval}");
    }
    let request = conversation.chat_reader().read(&body("s", &asked)).expect("a request");
    let input = Input::posted(request, &grace());
    conversation.check(&input).await.expect("before the response begins");
    let stream = conversation.ui_stream_resuming(Protocol::UiMessageStream, "msg_1");
    let turn = tokio::spawn(async move {
        let ended = conversation.receive(input).await;
        (ended, conversation)
    });
    let text = read(stream).await;
    let (ended, conversation) = turn.await.expect("a turn");
    assert!(matches!(ended, Ok(TurnOutcome::Answered { .. })), "{ended:?}");
    assert!(text.contains("sent to bob") && text.contains("Sent.") && !text.contains("1234"), "{text}");
    is_whole(&conversation);
}

/// A client shows each call once, in the message in which it was made.
#[tokio::test]
async fn a_call_that_the_user_leaves_is_no_part_of_the_next_message() {
    for protocol in [Protocol::UiMessageStream, Protocol::DataStream, Protocol::AssistantTransport] {
        let rig = rig([waits(), ScriptedTurn::text("As you wish.")]);
        let mut conversation = rig.converse();
        let first = conversation.ui_stream(protocol, "msg_1");
        conversation.send("Go.").await;
        assert!(read(first).await.contains("agent__send"));
        let next = conversation.ui_stream(protocol, "msg_2");
        drop(rig.heard.take());
        assert!(matches!(conversation.send("No, wait.").await, TurnOutcome::Answered { .. }));
        let next = read(next).await;
        assert!(next.contains("As you wish.") && !next.contains("agent__send"), "{next}");
        // The run's own sink and the history report its end.
        let ended = |event: &Event| matches!(event, Event::ToolCallResult { outcome: Outcome::Cancelled, .. });
        assert!(rig.heard.take().iter().any(ended));
        is_whole(&conversation);
    }
}

#[tokio::test]
async fn a_call_that_the_user_leaves_gets_its_end_in_the_message_that_continues() {
    let rig = rig([waits(), ScriptedTurn::text("As you wish.")]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    let next = conversation.ui_stream_resuming(Protocol::UiMessageStream, "msg_1");
    conversation.send("No, wait.").await;
    let next = read(next).await;
    let of_tools: Vec<_> = kinds(&next).into_iter().filter(|kind| kind.starts_with("tool-")).collect();
    assert_eq!(of_tools, ["tool-approval-response", "tool-output-denied"], "{next}");
    assert!(next.contains(r#""approved":false"#), "{next}");
}

/// The part of a client has no answer to a question that was decided elsewhere, and `validateUIMessages` refuses a
/// result next to an open question.
#[tokio::test]
async fn a_decision_from_elsewhere_is_part_of_the_message_that_continues() {
    for (decision, approved, output) in [
        (ApprovalDecision::Approve, true, "tool-output-available"),
        (ApprovalDecision::Deny(None), false, "tool-output-denied"),
    ] {
        let rig = rig([waits(), ScriptedTurn::text("Well.")]);
        let mut conversation = rig.converse();
        conversation.send("Go.").await;
        let asked = tests::question(&conversation, "s");
        let run = conversation.run().clone();
        let next = conversation.ui_stream_resuming(Protocol::UiMessageStream, "msg_1");
        run.resume(&asked, decision, &grace()).await.expect("decided");
        conversation.receive(Input::new()).await.expect("it continues");
        let next = read(next).await;
        assert_eq!(kinds(&next)[1..3], ["tool-approval-response", output], "{next}");
        let answer = format!(r#""approvalId":"{asked}","approved":{approved}"#);
        assert!(next.contains(&answer), "{next}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_after_the_conversation_is_saved() {
    for protocol in [Protocol::UiMessageStream, Protocol::DataStream, Protocol::AssistantTransport] {
        let rig = rig([ScriptedTurn::text("Hello.")]);
        let mut conversation = rig.converse();
        let stream = conversation.ui_stream(protocol, "msg_1");
        let saved = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let done = Arc::clone(&saved);
        let turn = tokio::spawn(async move {
            conversation.send("Hello?").await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            conversation.save().await.expect("a store");
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut stream = stream.end_after(turn);
        let whole = {
            let rig = rig_of_one();
            let mut conversation = rig.converse();
            let stream = conversation.ui_stream(protocol, "msg_1");
            conversation.send("Hello?").await;
            read(stream).await
        };
        let mut text = String::new();
        while let Some(bytes) = stream.chunk().await {
            let last = whole.len() == text.len() + bytes.len();
            assert!(saved.load(std::sync::atomic::Ordering::Acquire) || !last, "the end comes after the save");
            text.push_str(std::str::from_utf8(&bytes).expect("UTF-8"));
            assert!(saved.load(std::sync::atomic::Ordering::Acquire) || !text.contains("\"finish\""), "{text}");
        }
        assert!(saved.load(std::sync::atomic::Ordering::Acquire));
        assert_eq!(text, whole);
    }
}

fn rig_of_one() -> Rig {
    rig([ScriptedTurn::text("Hello.")])
}

#[tokio::test]
async fn a_reader_that_hangs_up_changes_nothing() {
    let turns = || [ScriptedTurn::call("a", "rig__double", r#"{"n":1}"#), ScriptedTurn::text("2")];
    let (heard, alone) = (rig(turns()), rig(turns()));
    let (mut one, mut two) = (heard.converse(), alone.converse());
    drop(one.ui_stream(Protocol::DataStream, "msg_1"));
    one.send("Go.").await;
    two.send("Go.").await;
    assert_eq!(one.history(), two.history());
    assert_eq!(heard.heard.done(), ["answered"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_dropped_ends_its_stream() {
    let rig = rig([ScriptedTurn::call("b", "agent__change", r#"{"ms":1000}"#)]);
    let mut conversation = rig.converse();
    let stream = conversation.ui_stream(Protocol::UiMessageStream, "msg_1");
    assert!(tokio::time::timeout(Duration::from_millis(10), conversation.send("Go.")).await.is_err());
    let text = read(stream).await;
    assert!(text.trim_end().ends_with("[DONE]"), "{text}");
    assert!(kinds(&text).contains(&"tool-output-error".to_owned()), "{text}");

    let stream = conversation.ui_stream(Protocol::UiMessageStream, "msg_2");
    drop(conversation);
    assert!(read(stream).await.trim_end().ends_with("[DONE]"), "no turn came");
}

#[tokio::test]
async fn a_reader_that_is_slow_gets_every_ending_within_bounds() {
    for &protocol in Protocol::ALL {
        let rig = rig([ScriptedTurn::call("a", "rig__double", r#"{"n":21}"#), ScriptedTurn::text("42")]);
        let events = {
            rig.converse().send("Go.").await;
            rig.heard.take()
        };
        let (sink, stream) = UiStream::new(protocol, "msg_1");
        let text = |event: &&Event| matches!(event, Event::TextDelta { .. });
        let delta = events.iter().find(text).expect("text").clone();
        let result = events.iter().find(|event| matches!(event, Event::ToolCallResult { .. })).expect("a result");
        // The stream has no reader, and far more events arrive than are kept.
        for _ in 0..400_000 {
            sink(delta.clone());
        }
        events.iter().for_each(|event| sink(event.clone()));
        let unread = format!("{stream:?}");
        let bytes: usize = unread.chars().filter(char::is_ascii_digit).collect::<String>().parse().expect("a count");
        assert!(((1 << 20)..(2 << 20)).contains(&bytes), "{unread}");
        // After `done`, no event is accepted.
        sink(result.clone());
        let text = read(stream).await;
        let end = &text[text.len() - 4096..];
        assert!(end.contains("\"a\"") && end.contains("42"), "the result of the call came through: {end}");
        assert!(end.contains("too slow for a part"), "{end}");
        assert_eq!(text.matches("too slow for a part").count(), 1);
    }
}

fn event(event: serde_json::Value) -> Event {
    serde_json::from_value(event).expect("an event")
}

#[tokio::test]
async fn a_slow_reader_learns_of_the_gap_if_the_sink_is_dropped() {
    for &protocol in Protocol::ALL {
        let (sink, stream) = UiStream::new(protocol, "msg_1");
        for _ in 0..2 {
            sink(event(json!({ "type": "text_delta", "text": "x".repeat(2 << 20) })));
        }
        drop(sink);
        assert_eq!(read(stream).await.matches("too slow for a part").count(), 1, "{protocol:?}");
    }
}

/// The encoder writes nothing for these events, so they are no gap in a long response.
#[tokio::test]
async fn events_without_bytes_are_no_gap() {
    let usage = json!({ "type": "usage", "input_tokens": 4711, "output_tokens": 8 });
    for silent in [json!({ "type": "graph", "id": "p1", "name": "researcher", "event": usage }), usage] {
        for &protocol in Protocol::ALL {
            let (sink, stream) = UiStream::new(protocol, "msg_1");
            sink(event(json!({ "type": "text_delta", "text": "x".repeat(2 << 20) })));
            sink(event(silent.clone()));
            sink(event(json!({ "type": "done", "reason": "answered" })));
            assert!(!read(stream).await.contains("too slow for a part"), "{protocol:?} {silent}");
        }
    }
}

#[tokio::test]
async fn reasoning_sources_and_files_of_an_answer_are_shown() {
    let source = |url: &str| {
        let mut citation = Citation::default();
        (citation.url, citation.title) = (Some(url.to_owned()), Some("A page".to_owned()));
        Part::Citation(citation)
    };
    for &protocol in Protocol::ALL {
        let answer = ScriptedTurn::text("See the page.")
            .and_part(Part::reasoning("I looked it up."))
            .and_part(source("https://a.example/page"))
            .and_part(source("https://a.example/page"))
            .and_part(source("javascript:alert(1)"))
            .and_part(Part::Media(Media::base64("image/png", "iVBORw0KGgo=").unwrap()))
            .and_part(Part::Media(Media::base64("application/x-test;a=\"b\"", "AAAA").unwrap()))
            .and_part(Part::Media(Media::url("image/png", "https://a.example/b.png").unwrap()))
            .and_part(Part::Media(Media::base64("application/x-test", "A".repeat(9 << 20)).unwrap()));
        let rig = rig([answer]);
        let mut conversation = rig.converse();
        let stream = conversation.ui_stream(protocol, "msg_1");
        conversation.send("Go.").await;
        let text = read(stream).await;
        for (what, times) in [
            ("I looked it up.", 1),
            ("https://a.example/page", 1),
            ("javascript:", 0),
            ("data:image/png;base64,iVBORw0K", 1),
            ("data:application/x-test;base64,AAAA", 1),
            ("https://a.example/b.png", 1),
            ("too large to be shown", 1),
        ] {
            assert_eq!(text.matches(what).count(), times, "{protocol}: {what}");
        }
        assert!(text.find("I looked").unwrap() < text.find("See the page.").unwrap());
        assert!(text.len() < 1 << 20);
    }
}

#[tokio::test]
async fn an_ag_ui_run_that_asks_is_resumed_by_the_next_one() {
    let rig = rig([waits(), ScriptedTurn::text("Sent.")]);
    let mut conversation = rig.converse();
    let body = |run: &str, messages: serde_json::Value, resume: serde_json::Value| {
        let body = serde_json::json!({"threadId": "t", "runId": run, "messages": messages, "resume": resume});
        body.to_string().into_bytes()
    };
    let user = serde_json::json!([{"id": "m1", "role": "user", "content": "Go."}]);
    let request =
        conversation.chat_reader().read_ag_ui(&body("r1", user.clone(), serde_json::json!([]))).expect("a run");
    let first = conversation.ui_stream(Protocol::AgUi, "r1").for_run(&request.chat_id, "r1");
    conversation.receive(Input::posted(request, &grace())).await.expect("a turn");
    let first = read(first).await;
    let asked = tests::question(&conversation, "s").to_string();
    let interrupt = format!(r#""outcome":{{"type":"interrupt","interrupts":[{{"id":"{asked}""#);
    assert!(first.contains(&interrupt) && !first.contains("1234"), "{first}");

    let again = conversation.chat_reader().read_ag_ui(&body("r2", user.clone(), serde_json::json!([])));
    assert_eq!(again.expect_err("unanswered").code(), "chat_interrupts");
    let resume = serde_json::json!([{"interruptId": asked, "status": "resolved", "payload": {"approved": true}}]);
    let request = conversation.chat_reader().read_ag_ui(&body("r2", serde_json::json!([]), resume)).expect("a run");
    let second = conversation.ui_stream(Protocol::AgUi, "r2").for_run(&request.chat_id, "r2");
    conversation.receive(Input::posted(request, &grace())).await.expect("a turn");
    let second = read(second).await;
    let begin = r#"data: {"type":"RUN_STARTED","threadId":"t","runId":"r2""#;
    assert!(second.starts_with(begin) && !second.contains("TOOL_CALL_START"), "{second}");
    assert_eq!(kinds(&second)[1], "TOOL_CALL_RESULT", "{second}");
    assert!(second.contains("Sent.") && second.contains(r#""outcome":{"type":"success"}"#), "{second}");
}

/// Without an error, the client would consider its answer accepted, and send it again and again.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_an_error_and_the_call_still_waits() {
    let rig = rig([ScriptedTurn::call("c", "rig__cursor", r#"{"file":"a.rs"}"#), ScriptedTurn::text("Line 7.")]);
    let mut conversation = rig.converse();
    conversation.send("Where?").await;
    let stream = conversation.ui_stream_resuming(Protocol::UiMessageStream, "msg_1");
    let answer = |json: &str| Input::new().answer(ClientAnswer::value("c", json));
    let ended = conversation.receive(answer("\"nowhere\"")).await;
    assert!(matches!(ended, Ok(TurnOutcome::Waiting { .. })), "{ended:?}");
    assert_eq!(kinds(&read(stream).await), ["start", "error"]);
    let stream = conversation.ui_stream_resuming(Protocol::UiMessageStream, "msg_1");
    assert!(matches!(conversation.receive(answer("7")).await, Ok(TurnOutcome::Answered { .. })));
    assert_eq!(kinds(&read(stream).await)[..2], ["start", "tool-output-available"]);
    assert_eq!(rig.heard.done(), ["client_required", "client_required", "answered"]);
}

/// Many rows, of which few fit.
#[tool(name = "rows__many", effect = read_only, max_result_bytes = 64, redact = ["$"])]
fn many_rows() -> Result<Vec<u32>, ToolError> {
    Ok((0..100).collect())
}

#[tokio::test]
async fn a_stream_says_what_did_not_fit_into_a_result() {
    for &protocol in Protocol::ALL {
        let script = [ScriptedTurn::call("c1", "rows__many", "{}"), ScriptedTurn::text("Done.")];
        let catalog = ToolCatalog::builder().tool::<many_rows>().build().unwrap();
        let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["rows__many"])).build().unwrap();
        let agent = Agent::new(ScriptedModel::new(script));
        let mut conversation = agent.converse(runner.run(RunOptions::new()));
        let stream = conversation.ui_stream(protocol, "msg_1");
        conversation.send("Go.").await;
        let text = read(stream).await;
        let [result, missing] = ["[0,1,2", "more items did not fit into the result"].map(|what| text.find(what));
        assert!(result.is_some() && result < missing, "{protocol}: {text}");
        assert!(text.contains("left-out") && text.contains(r#""toolCallId":"c1""#), "{protocol}: {text}");
    }
}

/// The UI of the first approver shows the call as waiting again, under the same `approvalId`.
#[tokio::test]
async fn an_approval_that_does_not_suffice_asks_again() {
    let two = format!("{POLICY}\n[approvals]\nrequired = 2");
    for protocol in [Protocol::UiMessageStream, Protocol::AgUi] {
        let rig = with_policy(&two, [waits(), ScriptedTurn::text("Sent.")]);
        let mut conversation = rig.converse();
        conversation.send("Go.").await;
        let asked = tests::question(&conversation, "s");
        let mut responses = Vec::new();
        for (name, code) in [("grace", "approval_required"), ("grace", "not_allowed"), ("heidi", "answered")] {
            let stream = conversation.ui_stream_resuming(protocol, "msg_1");
            let input = Input::new().decide(&asked, ApprovalDecision::Approve, &Decider::new(name));
            let ended = conversation.receive(input).await;
            let told = ended.as_ref().map_or_else(tool_runtime::runner::ResumeError::code, TurnOutcome::code);
            assert_eq!(told, code, "{name}");
            responses.push(read(stream).await);
        }
        assert!(responses[0].contains(&asked.to_string()), "{}", responses[0]);
        assert!(responses[1].contains("another one has to approve it"), "{}", responses[1]);
        assert!(responses[2].contains("Sent."), "{}", responses[2]);
        if protocol == Protocol::UiMessageStream {
            assert!(kinds(&responses[0]).contains(&"tool-approval-request".to_owned()), "{}", responses[0]);
        }
    }
}
