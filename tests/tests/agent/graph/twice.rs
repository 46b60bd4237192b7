//! A decision answers one question: sent twice, it does not decide on the next call of the graph.

use tool_runtime::agent::{Input, RunQueue, Worker};
use tool_runtime::call::{Decider, DecisionError, Question};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{AuditRecord, PendingCall, RecordFilter};

use super::*;

const RULES: &str = "require_approval_for_tools = ['notes__delete']";

fn bob() -> Decider {
    Decider::new("bob").tenant("acme")
}

/// The graph wants to delete notes 7 and 8.
fn graph() -> Graph {
    let two = call("c2", "notes__delete", r#"{"note_id":7}"#).and_call("c3", "notes__delete", r#"{"note_id":8}"#);
    let turns = [call("c1", "notes__list", "{}"), two, ScriptedTurn::text(REPORT)];
    researcher(turns)
}

fn parent() -> Agent {
    let asks = call("p1", "graph__researcher", r#"{"task":"Clean up."}"#);
    Agent::new(ScriptedModel::new([asks, ScriptedTurn::text("Cleaned up.")]))
}

/// Decisions that were refused because they answered another question.
async fn refused(rig: &Rig) -> usize {
    let records = rig.store.records(&RecordFilter::default()).await.expect("records");
    let is_refused = |record: &AuditRecord| match record {
        AuditRecord::Decision(decision) => decision.mismatch() == Some(DecisionError::Question),
        _ => false,
    };
    records.iter().filter(|sealed| is_refused(&sealed.record)).count()
}

/// Waits until the parent's call has a question other than `before`, and returns it.
async fn asks(rig: &Rig, before: Option<&Question>) -> Question {
    loop {
        let calls = tests::pending_calls(&*rig.store, &RecordFilter::default()).await;
        let question = calls.iter().find(|call| &*call.run_id == "parent").map(PendingCall::question);
        match question {
            Some(question) if Some(&question) != before => return question,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_conversation_takes_a_repeated_decision_once() {
    let rig = Rig::new();
    let mut conversation = parent().converse(rig.runner(RULES, graph()).run(rig.options()));
    let TurnOutcome::Waiting { calls } = conversation.send("Clean up.").await else { panic!("it waits") };
    let question = calls[0].question.clone();
    let ended = conversation.decide(&question, ApprovalDecision::Approve, &bob()).await.expect("it waits");
    let TurnOutcome::Waiting { calls } = ended else { panic!("note 8 waits: {ended:?}") };
    assert_ne!(calls[0].question, question);
    assert_eq!((rig.effects(), calls[0].shown_arguments.as_ref().unwrap().get()), (1, r#"{"note_id":8}"#));
    for times in 1..=2 {
        let again = conversation.decide(&question, ApprovalDecision::Approve, &bob()).await;
        assert_eq!(again.expect_err("it asks another question").code(), "not_allowed");
        assert_eq!((conversation.waiting().count(), rig.effects(), refused(&rig).await), (1, 1, times));
    }
    // An expiry of the first question is no expiry of the second.
    let expired = conversation.receive(Input::new().expire(&question)).await;
    assert_eq!(expired.expect_err("it asks another question").code(), "not_allowed");
    let next = conversation.waiting().next().expect("note 8").question.clone();
    let ended = conversation.decide(&next, ApprovalDecision::Approve, &bob()).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(rig.effects(), 2);
}

/// Two processes have the conversation as it was when it asked, and each gets the decision.
#[tokio::test]
async fn two_copies_of_a_conversation_take_a_decision_once() {
    let rig = Rig::new();
    let (agent, runner) = (parent(), rig.runner(RULES, graph()));
    let mut conversation = agent.converse(runner.run(rig.options()));
    assert!(matches!(conversation.send("Clean up.").await, TurnOutcome::Waiting { .. }));
    let question = conversation.waiting().next().expect("it waits").question.clone();
    let saved = conversation.save().await.expect("saved");
    drop(conversation);
    let copy = async || agent.restore(&runner, rig.options(), &saved).await.expect("restored");
    let (mut first, mut second) = (copy().await, copy().await);
    let ended = first.decide(&question, ApprovalDecision::Approve, &bob()).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    for copy in [&mut second, &mut copy().await] {
        let again = copy.decide(&question, ApprovalDecision::Approve, &bob()).await;
        assert_eq!(again.expect_err("it asks another question").code(), "not_allowed");
    }
    assert_eq!((rig.effects(), refused(&rig).await), (1, 2), "note 7 alone");
    let eight = first.waiting().next().expect("note 8").question.clone();
    first.decide(&eight, ApprovalDecision::Deny(None), &bob()).await.expect("it waits");
    assert_eq!(rig.effects(), 1);
}

#[tokio::test]
async fn a_browser_that_sends_its_body_twice_decides_once() {
    let rig = Rig::new();
    let mut conversation = parent().converse(rig.runner(RULES, graph()).run(rig.options()));
    assert!(matches!(conversation.send("Clean up.").await, TurnOutcome::Waiting { .. }));
    let question = conversation.waiting().next().expect("it waits").question.clone();
    let part = serde_json::json!({ "type": "tool-graph__researcher", "toolCallId": "p1", "input": {},
        "state": "approval-responded", "approval": { "id": question, "approved": true } });
    let body = serde_json::json!({ "id": "chat", "messages": [
        { "id": "u", "role": "user", "parts": [{ "type": "text", "text": "Clean up." }] },
        { "id": "m", "role": "assistant", "parts": [part] } ] })
    .to_string();
    let read = |conversation: &Conversation| {
        let request = conversation.chat_reader().read(body.as_bytes()).expect("a body of the AI SDK");
        Input::posted(request, &bob())
    };
    let input = read(&conversation);
    conversation.check(&input).await.expect("it fits");
    let ended = conversation.receive(input).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    // A service finds out before its response begins, and records it.
    let refusal = conversation.check(&read(&conversation)).await.expect_err("it asks another question");
    assert_eq!((refusal.code(), rig.effects(), refused(&rig).await), ("not_allowed", 1, 1));
    conversation.receive(read(&conversation)).await.expect_err("the same for one that does not ask first");
    let errors = rig.heard.lock().unwrap().iter().filter(|event| matches!(event, Event::Error { .. })).count();
    assert_eq!((errors, rig.effects(), refused(&rig).await), (1, 1, 2));
    // AG-UI answers the interrupt with the same question.
    let resume =
        serde_json::json!([{ "interruptId": question, "status": "resolved", "payload": { "approved": true } }]);
    let body = serde_json::json!({ "threadId": "t", "runId": "r", "resume": resume, "messages": [
        { "id": "m", "role": "assistant", "content": "", "toolCalls": [{ "id": "p1", "type": "function",
            "function": { "name": "graph__researcher", "arguments": "{}" } }] } ] })
    .to_string();
    let request = conversation.chat_reader().read_ag_ui(body.as_bytes()).expect("a body of AG-UI");
    conversation.receive(Input::posted(request, &bob())).await.expect_err("it asks another question");
    assert_eq!((rig.effects(), refused(&rig).await), (1, 3));
    let eight = conversation.waiting().next().expect("note 8").question.clone();
    conversation.decide(&eight, ApprovalDecision::Deny(None), &bob()).await.expect("it waits");
    assert_eq!(rig.effects(), 1);
}

#[tokio::test]
async fn a_post_that_comes_twice_decides_once() {
    let rig = Rig::new();
    let (agent, runner) = (parent(), rig.runner(RULES, graph()));
    let queue = RunQueue::new(&runner);
    let mut conversation = agent.converse(runner.run(rig.options()));
    conversation.accept(Input::from("Clean up.")).await.expect("a message");
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn(Worker::new(agent, runner).run(async move { drop(stopped.await) }));

    let seven = asks(&rig, None).await;
    let post = |question: &Question, decider: &Decider| {
        let (queue, input) = (queue.clone(), Input::new().decide(question, ApprovalDecision::Approve, decider));
        async move { queue.post("parent", Some("acme"), &input).await }
    };
    for (decider, code) in [
        (Decider::new("ada").tenant("acme"), "not_allowed"),
        (bob().tenant("other"), "not_pending"),
        (Decider::new("bob"), "not_pending"),
        (Decider::new("b\u{200b}ob").tenant("acme"), "not_allowed"),
    ] {
        assert_eq!(queue.may_decide("parent", &seven, &decider).await.expect_err("they may not").code(), code);
        assert_eq!(post(&seven, &decider).await.expect_err("they may not").code(), code);
        let decided = queue.decide("parent", &seven, ApprovalDecision::Approve, &decider).await;
        assert_eq!(decided.expect_err("they may not").code(), code);
    }
    queue.may_decide("parent", &seven, &bob()).await.expect("bob may");
    post(&seven, &bob()).await.expect("posted");
    // The first decision may still be in the post, may be applied, or may be followed by the next question. The second
    // one never counts.
    let again = post(&seven, &bob()).await;
    let eight = asks(&rig, Some(&seven)).await;
    assert!(again.is_err());
    assert_eq!(post(&seven, &bob()).await.expect_err("replaced").code(), "not_allowed");
    assert!(refused(&rig).await >= 1);
    let posted = queue.decide("parent", &eight, ApprovalDecision::Deny(None), &bob()).await.expect("posted");
    assert!(posted.is_none());
    while &*queue.find("parent", Some("acme")).await.expect("it is there").0.state != "answered" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rig.effects(), 1, "note 7 alone");
    assert_eq!(post(&eight, &bob()).await.expect_err("nothing waits").code(), "not_pending");
    stop.send(()).expect("the worker runs");
    worker.await.expect("no panic").expect("the store is there");
}

#[tokio::test]
async fn an_engine_that_repeats_a_decision_decides_once() {
    let rig = Rig::new();
    let runner = rig.runner(RULES, graph());
    let agent = parent();
    let mut conversation = agent.converse(runner.run(rig.options()));
    assert!(matches!(conversation.send("Clean up.").await, TurnOutcome::Waiting { .. }));
    let question = conversation.waiting().next().expect("it waits").question.clone();
    let engine = Here { agent, runner, options: rig.options() };
    let approve = || Input::new().decide(&question, ApprovalDecision::Approve, &bob());
    conversation.accept_on(&engine, "decision", approve()).await.expect("it is taken");
    conversation.accept_on(&engine, "decision", approve()).await.expect_err("it asks another question");
    assert_eq!((rig.effects(), refused(&rig).await), (1, 1));
    let eight = conversation.waiting().next().expect("note 8").question.clone();
    let ended = conversation.decide(&eight, ApprovalDecision::Approve, &bob()).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}

/// Keeps nothing.
struct Here {
    agent: Agent,
    runner: ToolRunner,
    options: RunOptions,
}

#[async_trait]
impl tool_runtime::agent::Durable for Here {
    type Error = tool_runtime::agent::StepError;

    async fn unit(
        &self,
        _: &str,
        work: tool_runtime::agent::StepFuture<'_>,
    ) -> Result<tool_runtime::agent::SavedConversation, Self::Error> {
        work.await
    }

    async fn restore(&self, saved: tool_runtime::agent::SavedConversation) -> Result<Conversation, Self::Error> {
        let restored = self.agent.restore(&self.runner, self.options.clone(), saved).await;
        restored.map_err(tool_runtime::agent::StepError::other)
    }
}

#[tokio::test]
async fn a_sealed_call_is_decided_by_its_own_question() {
    use tool_runtime::runner::SealingKeys;

    let rig = Rig::new();
    let runner = rig.runner(RULES, graph());
    let run = runner.run(rig.options());
    let asked = run.exec(ask("p1")).await;
    let (keys, question) = (SealingKeys::new("k", [7; 32]), asked.question().expect("it waits").clone());
    let token = run.seal("p1", &keys).await.expect("a token");
    let (opened, sealed) = runner.open_token(&token, &keys, rig.options()).await.expect("it waits");
    assert_eq!(sealed, question);
    let next = opened.resume(&question, ApprovalDecision::Approve, &bob()).await.expect("it waits");
    assert_eq!((next.outcome(), rig.effects()), (Outcome::ApprovalRequired, 1));
    assert_ne!(next.question(), Some(&question));
    // The token belongs to the previous call, so no call asks the question of a second decision with it.
    assert!(runner.open_token(&token, &keys, rig.options()).await.is_err());
    let again = opened.resume(&question, ApprovalDecision::Approve, &bob()).await.expect("another question");
    assert_eq!((again.outcome(), rig.effects()), (Outcome::ApprovalMismatch, 1));
    let next = next.question().expect("note 8 waits").clone();
    assert!(opened.resume(&next, ApprovalDecision::Approve, &bob()).await.expect("it waits").is_ok());
}

/// A call that an application made itself, in a run without a worker, after the end of its process.
#[tokio::test]
async fn a_call_of_no_worker_is_decided_in_any_process_with_the_tool() {
    let rig = Rig::new();
    let rules = "require_approval_for_tools = ['notes__count']";
    let asked = rig.run(rules, []).exec(ToolCall::text("k", "notes__count", r#"{"at":1}"#)).await;
    let question = asked.question().expect("it waits").clone();
    let queue = RunQueue::new(&rig.runner(rules, researcher([])));
    for (decider, code) in [(bob().tenant("other"), "not_pending"), (Decider::new("ada").tenant("acme"), "not_allowed")]
    {
        let refused = queue.decide("parent", &question, ApprovalDecision::Approve, &decider).await;
        assert_eq!(refused.expect_err("they may not").code(), code);
    }
    let approve = async |question: &Question| queue.decide("parent", question, ApprovalDecision::Approve, &bob()).await;
    assert_eq!(queue.may_decide("elsewhere", &question, &bob()).await.expect_err("another run").code(), "not_pending");
    let Ok(Some(other)) = approve(&tests::never("k")).await else { panic!("the call waits") };
    assert_eq!((other.outcome(), rig.effects(), refused(&rig).await), (Outcome::ApprovalMismatch, 0, 1));
    let Ok(Some(result)) = approve(&question).await else { panic!("it is carried out here") };
    assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 1));
    assert_eq!(approve(&question).await.expect_err("it was decided").code(), "not_pending");
    assert_eq!(rig.effects(), 1);
}

/// The decider does not learn the cause, so the operators are told.
#[tokio::test]
async fn operators_hear_of_a_decider_of_another_tenant() {
    let (rig, told) = (Rig::new(), Arc::new(Mutex::new(Vec::new())));
    let policy = format!("{POLICY}\nrequire_approval_for_tools = ['notes__count']");
    let sink = Arc::clone(&told);
    let runner = ToolRunner::builder(
        ToolCatalog::builder().namespaces(["notes"]).dynamic(researcher([])).build().expect("a catalog"),
        ToolPolicy::from_toml(&policy).expect("a policy"),
    );
    let runner = runner.capabilities(rig.capabilities()).approvals(true).store(Arc::clone(&rig.store));
    let runner = runner.failures(move |failure: &tool_runtime::runner::Failure<'_>| {
        sink.lock().unwrap().push((failure.code.to_owned(), failure.tool.map(str::to_owned)));
    });
    let run = runner.build().expect("a runner").run(rig.options());
    let asked = run.exec(ToolCall::text("k", "notes__count", r#"{"at":1}"#)).await;
    let question = asked.question().expect("it waits");
    // The decider lacks its tenant.
    let error = run.resume(question, ApprovalDecision::Approve, &Decider::new("bob")).await.expect_err("a stranger");
    assert_eq!(error.code(), "not_pending");
    assert!(!error.to_string().contains("tenant"));
    assert_eq!(*told.lock().unwrap(), [("decider_tenant".to_owned(), Some("notes__count".to_owned()))]);
    run.resume(question, ApprovalDecision::Approve, &bob()).await.expect("bob may");
    assert_eq!((rig.effects(), told.lock().unwrap().len()), (1, 1));
}
