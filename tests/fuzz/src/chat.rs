//! Bodies that chat UIs post: whatever a body claims, it answers only waiting calls, each once and as the person or the
//! client that the call waits for.

use std::collections::BTreeSet;

use tool_runtime::call::{CallId, ClientAnswer, Suspension};
use tool_runtime::wire::Message;
use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::ui::ChatReader;

/// `done` ended, `ask` waits for a person, `run` for the client.
fn reader() -> ChatReader {
    let call = |id: &str| Part::Call(CallMessage::new(id, format!("ns__{id}"), "{}"));
    let history = [Message::user("Go."), Message::Assistant(["done", "ask", "run"].map(call).into())];
    let waiting = [(CallId::new("ask"), Suspension::Approval), (CallId::new("run"), Suspension::Client)];
    ChatReader::new(&history, waiting).with_max_bytes(16 << 10)
}

/// The first byte of an input selects the protocol of the body.
pub fn only_what_waits_is_answered(input: &[u8]) {
    let Some((&seed, body)) = input.split_first() else { return };
    let is_ag_ui = seed % 2 == 1;
    let read = if is_ag_ui { reader().read_ag_ui(body) } else { reader().read(body) };
    let Ok(request) = read else { return };
    assert!(body.len() <= 16 << 10, "bodies are bounded");
    assert_eq!(request.run_id.is_some(), is_ag_ui, "AG-UI names its runs");
    assert!(!is_ag_ui || !request.decisions.is_empty());
    assert!(request.text.as_ref().is_none_or(|text| !text.trim().is_empty()), "no text is no message");
    assert!(request.files.len() <= 32, "files are bounded");
    assert!(
        request.text.is_some()
            || !request.files.is_empty()
            || !request.decisions.is_empty()
            || !request.answers.is_empty(),
        "a request brings something"
    );
    let mut answered = BTreeSet::new();
    for (question, _, reason) in &request.decisions {
        let id = question.call_id();
        assert_eq!(id.as_str(), "ask", "a person decides what a person was asked");
        assert!(reason.as_ref().is_none_or(|reason| reason.len() <= 4 << 10), "reasons are bounded");
        assert!(answered.insert(id.as_str()), "a decision is made once");
    }
    for answer in &request.answers {
        assert_eq!(answer.id().as_str(), "run", "a client answers what a client was given");
        if let ClientAnswer::Value { json, .. } = answer {
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok(), "an output is JSON");
        }
        assert!(answered.insert(answer.id().as_str()), "an answer is given once");
    }
}
