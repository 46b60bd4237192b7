//! A decision that comes twice is refused and recorded, wherever the call is known, and never without a bound.

use tool_runtime::agent::{ClientAnswer, Input, RunQueue};
use tool_runtime::call::{DecisionError, Question};
use tool_runtime::store::DecisionRecord;

use super::*;

/// The refused decisions on calls that did not wait.
async fn late(store: &MemoryStore) -> Vec<DecisionRecord> {
    let records = store.records(&RecordFilter::default()).await.expect("records");
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision().cloned());
    decisions.filter(|one| one.mismatch() == Some(DecisionError::NotPending)).collect()
}

async fn asked(run: &Run) -> Question {
    run.pending(&CallId::new("person")).await.expect("a store").expect("it waits").question()
}

#[tokio::test]
async fn a_second_decision_has_a_record() {
    for first in decisions() {
        for second in decisions() {
            let store = Arc::new(MemoryStore::new());
            let run = suspended(&runner(POLICY, &store), ada()).await;
            let question = asked(&run).await;
            run.resume(&question, first.clone(), &grace()).await.expect("it waits");
            let again = run.resume(&question, second.clone(), &grace().because("Twice.")).await;
            assert_eq!(again.expect_err("it has ended").code(), "not_pending", "{first:?} {second:?}");
            let late = late(&store).await;
            let [record] = &late[..] else { panic!("{first:?} {second:?}: {late:?}") };
            assert_eq!((&*record.run_id, record.call_id.as_str()), ("run-1", "person"));
            assert_eq!((record.tool.as_str(), record.tenant.as_deref()), ("waiting__change", Some("acme")));
            assert_eq!(record.decider.as_ref().and_then(Decider::reason), Some("Twice."));
            assert_eq!(
                store.calls(&RecordFilter::call("run-1", CallId::new("person"))).await.expect("records").len(),
                1
            );
        }
    }
}

#[tokio::test]
async fn strangers_cannot_fill_a_store_with_decisions() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let run = suspended(&runner, ada()).await;
    let queue = RunQueue::new(&runner);
    for id in 0..50 {
        let never = tests::never(&format!("never-{id}"));
        run.resume(&never, ApprovalDecision::Approve, &grace()).await.expect_err("it never was");
        queue.decide("run-1", &never, ApprovalDecision::Approve, &grace()).await.expect_err("it never was");
        queue.decide("elsewhere", &never, ApprovalDecision::Approve, &grace()).await.expect_err("it never was");
    }
    assert_eq!(late(&store).await.len(), 0);
    let question = asked(&run).await;
    run.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    for _ in 0..50 {
        run.resume(&question, ApprovalDecision::Approve, &grace()).await.expect_err("it has ended");
        queue.decide("run-1", &question, ApprovalDecision::Approve, &grace()).await.expect_err("it has ended");
    }
    assert_eq!(late(&store).await.len(), 16);
}

#[tokio::test]
async fn a_queue_records_it_for_a_call_that_it_carried_out() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let question = asked(&suspended(&runner, ada()).await).await;
    let queue = RunQueue::new(&runner);
    let decide = || queue.decide("run-1", &question, ApprovalDecision::Approve, &DECIDER);
    assert!(matches!(decide().await, Ok(Some(_))));
    assert_eq!(decide().await.expect_err("it has ended").code(), "not_pending");
    assert_eq!(late(&store).await.len(), 1);
}

static DECIDER: std::sync::LazyLock<Decider> = std::sync::LazyLock::new(grace);

#[tokio::test]
async fn a_conversation_refuses_it_before_anything_is_taken() {
    let store = Arc::new(MemoryStore::new());
    let asks =
        ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#).and_call("client", "waiting__cursor", "{}");
    let agent = Agent::new(ScriptedModel::new([asks, ScriptedTurn::text("Done.")]));
    let mut conversation = agent.converse(runner(POLICY, &store).run(ada()));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    let question = tests::question(&conversation, "person");
    let body = serde_json::json!({ "id": "chat", "messages": [
        { "id": "u", "role": "user", "parts": [{ "type": "text", "text": "Go." }] },
        { "id": "m", "role": "assistant", "parts": [{ "type": "tool-waiting__change", "toolCallId": "person",
            "input": {}, "state": "approval-responded", "approval": { "id": question, "approved": true } }] } ] });
    let resume = |client: serde_json::Value| {
        let person =
            serde_json::json!({ "interruptId": question, "status": "resolved", "payload": { "approved": true } });
        serde_json::json!({ "threadId": "t", "runId": "r", "resume": [person], "messages": [
            { "id": "m", "role": "assistant", "content": "", "toolCalls": [{ "id": "person", "type": "function",
                "function": { "name": "waiting__change", "arguments": "{}" } }, client] } ] })
        .to_string()
    };
    let client = serde_json::json!({ "id": "client", "type": "function",
        "function": { "name": "waiting__cursor", "arguments": "{}" } });
    let chat = |conversation: &tool_runtime::agent::Conversation| {
        let request = conversation.chat_reader().read(body.to_string().as_bytes()).expect("a body of the AI SDK");
        Input::posted(request, &grace())
    };
    let ag_ui = |conversation: &tool_runtime::agent::Conversation| {
        let request =
            conversation.chat_reader().read_ag_ui(resume(client.clone()).as_bytes()).expect("a body of AG-UI");
        Input::posted(request, &grace())
    };
    let input = chat(&conversation);
    conversation.check(&input).await.expect("it fits");
    conversation.receive(input).await.expect("it waits");
    for (at, bring) in [&chat as &dyn Fn(&_) -> _, &ag_ui].into_iter().enumerate() {
        let input = bring(&conversation);
        let refused = conversation.check(&input).await.expect_err("before the response begins");
        assert_eq!(refused.code(), "not_pending");
        assert_eq!(late(&store).await.len(), 3 * at + 1);
        assert_eq!(conversation.receive(input.clone()).await.expect_err("refused").code(), "not_pending");
        assert_eq!(conversation.accept(input).await.expect_err("refused").code(), "not_pending");
        assert_eq!(late(&store).await.len(), 3 * at + 3);
    }
    // Beside an answer that is wanted, what the client remembers of an earlier decision is no decision.
    let both = serde_json::json!({ "id": "chat", "messages": [body["messages"][0], { "id": "m", "role": "assistant",
        "parts": [body["messages"][1]["parts"][0], { "type": "tool-waiting__cursor", "toolCallId": "client",
            "input": {}, "state": "output-available", "output": "here" }] }] });
    let request = conversation.chat_reader().read(both.to_string().as_bytes()).expect("a body of the AI SDK");
    assert_eq!(request.answers.len(), 1, "{request:?}");
    let ended = conversation.answer([ClientAnswer::value("client", r#""here""#)]).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}
