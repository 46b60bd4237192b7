//! A second decision on a call is refused and recorded wherever the call is known. The number of such records is
//! bounded.

use tool_runtime::agent::{Input, RunQueue};
use tool_runtime::call::{ClientAnswer, DecisionError, Question};
use tool_runtime::store::{Chain, DecisionRecord};
use tool_runtime::testing::ManualClock;

use super::*;

/// The refused decisions on calls that did not wait.
async fn late(store: &MemoryStore) -> Vec<DecisionRecord> {
    let records = store.records(&RecordFilter::default()).await.expect("records");
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision().cloned());
    decisions.filter(|one| one.mismatch() == Some(DecisionError::NotPending)).collect()
}

/// The refused decisions, whatever the reason.
async fn refusals(store: &MemoryStore) -> Vec<DecisionRecord> {
    let records = store.records(&RecordFilter::default()).await.expect("records");
    let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision().cloned());
    decisions.filter(|one| one.refused().is_some()).collect()
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

/// A call that waits for weeks: each decider leaves sixteen refusals, and takes nothing from the others.
#[tokio::test]
async fn refused_decisions_on_a_waiting_call_are_bounded_for_each_decider() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let run = suspended(&runner, ada()).await;
    let (question, queue) = (asked(&run).await, RunQueue::new(&runner));
    let own = Decider::new("ada").tenant("acme");
    let stranger = Decider::new("grace").tenant("other");
    for (place, decider) in [own, stranger].iter().enumerate() {
        for _ in 0..20 {
            run.resume(&question, ApprovalDecision::Approve, decider).await.expect_err("they may not decide");
            queue
                .decide("run-1", &question, ApprovalDecision::Approve, decider)
                .await
                .expect_err("they may not decide");
        }
        assert_eq!(refusals(&store).await.len(), 16 * (place + 1), "{decider:?}");
    }
    let edited = ApprovalDecision::ApproveEdited(r#"{"to":"none"}"#.into());
    for _ in 0..20 {
        let refused = run.resume(&question, edited.clone(), &grace()).await.expect("it is the answer to her");
        assert_eq!(refused.outcome(), Outcome::ApprovalMismatch);
    }
    assert_eq!(refusals(&store).await.len(), 48);
    run.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(record(&store, "person").await.outcome, Outcome::Ok);
}

#[tokio::test]
async fn a_queue_records_a_second_decision_on_a_finished_call() {
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
async fn a_conversation_refuses_a_second_decision_before_it_takes_the_input() {
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
    // In addition to an answer to the waiting call, the client repeats an earlier decision, which is ignored.
    let both = serde_json::json!({ "id": "chat", "messages": [body["messages"][0], { "id": "m", "role": "assistant",
        "parts": [body["messages"][1]["parts"][0], { "type": "tool-waiting__cursor", "toolCallId": "client",
            "input": {}, "state": "output-available", "output": "here" }] }] });
    let request = conversation.chat_reader().read(both.to_string().as_bytes()).expect("a body of the AI SDK");
    assert_eq!((request.decisions.len(), request.answers.len()), (0, 1), "{request:?}");
    let ended = conversation.answer([ClientAnswer::value("client", r#""here""#)]).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}

/// A program that delivers decisions by its own means passes on forged questions, unknown calls and foreign deciders.
#[tokio::test]
async fn a_recorded_refusal_decides_nothing_and_stays_with_its_call() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let late_by = async |run: &str, question: &Question, decider: &Decider| {
        let before = late(&store).await.len();
        for decision in decisions() {
            runner.record_late(run, question, &decision, decider).await.expect("a store");
        }
        late(&store).await.split_off(before)
    };
    let owner = suspended(&runner, ada()).await;
    let question = asked(&owner).await;
    let forged = tests::never("person");
    assert_ne!(forged, question);
    // A call that never was, a run that never was, and a call of another tenant leave nothing.
    let never = tests::never("nothing");
    let elsewhere = [tests::grace(), Decider::new("grace").tenant("other"), Decider::new("grace").tenant("")];
    assert!(late_by("run-1", &never, &grace()).await.is_empty());
    assert!(late_by("run-2", &question, &grace()).await.is_empty());
    for decider in &elsewhere {
        assert!(late_by("run-1", &question, decider).await.is_empty(), "{decider:?}");
    }
    // A forged digest, the call's own principal, and an unreadable name: each is recorded as refused.
    for decider in [grace(), Decider::new("ada").tenant("acme"), Decider::new("\u{200b}").tenant("acme")] {
        let refused = late_by("run-1", &forged, &decider).await;
        assert_eq!(refused.len(), 4);
        for record in refused {
            assert_eq!((record.call_id.as_str(), record.decider.as_ref()), ("person", Some(&decider)));
            assert!(record.argument_digest.is_none() && record.edited_digest.is_none() && record.changes.is_empty());
            let written = serde_json::to_value(&record).expect("JSON");
            let of_the_call = serde_json::json!({ "masked": { "to": 3 } });
            assert_eq!(written["arguments"], of_the_call, "those of the call, without values of the decision");
        }
    }
    // It still waits, and its own question decides it.
    assert_eq!(record(&store, "person").await.ended_at, None);
    let result = owner.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(result.to_model(), "3");
    for _ in 0..3 {
        assert_eq!(late_by("run-1", &question, &grace()).await.len(), 4);
    }
    assert!(late_by("run-1", &question, &grace()).await.is_empty(), "sixteen are recorded");
    let records = store.records(&RecordFilter::default()).await.expect("records");
    assert_eq!(Chain::verify(&records), Ok(()));
    assert_eq!(record(&store, "person").await.outcome, Outcome::Ok);
}

/// Two tenants have a run and a call of the same ids: neither tenant's refusals are in the other's records, nor use up
/// its bound.
#[tokio::test]
async fn a_recorded_refusal_is_about_the_call_of_its_tenant() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    suspended(&runner, ada()).await;
    let bob = RunOptions::new().run_id("run-1").principal("bob").tenant("other").role("editor");
    suspended(&runner, bob).await;
    let question = tests::never("person");
    let queue = RunQueue::new(&runner);
    for tenant in ["other", "acme"] {
        let decider = Decider::new("mallory").tenant(tenant);
        for _ in 0..20 {
            runner.record_late("run-1", &question, &ApprovalDecision::Approve, &decider).await.expect("a store");
            let decided = queue.decide("run-1", &question, ApprovalDecision::Approve, &decider).await;
            let result = decided.expect("a call of the tenant waits").expect("it is refused at once");
            assert_eq!(result.outcome(), Outcome::ApprovalMismatch);
        }
    }
    let found = refusals(&store).await;
    for (tenant, principal) in [("acme", "ada"), ("other", "bob")] {
        let of_tenant = found.iter().filter(|record| record.tenant.as_deref() == Some(tenant));
        let of_tenant: Vec<_> = of_tenant.collect();
        assert!(of_tenant.len() >= 16, "{tenant}: {}", of_tenant.len());
        for record in of_tenant {
            assert_eq!(record.principal.as_deref(), Some(principal));
            assert_eq!(record.decider.as_ref().and_then(Decider::tenant_id), Some(tenant));
        }
    }
}

/// The decision comes before its call waits: it is refused through each door, leaves nothing, and does not count once
/// the call asks exactly this question.
#[tokio::test]
async fn a_decision_before_its_question_is_refused_and_forgotten() {
    let clock = || ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time"));
    let begin = |turns: Vec<ScriptedTurn>| {
        let store = Arc::new(MemoryStore::with_clock(clock()));
        let catalog = ToolCatalog::collect().expect("a catalog");
        let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(POLICY).expect("a policy"))
            .approvals(true)
            .clock(clock())
            .store(Arc::clone(&store))
            .build()
            .expect("a runner");
        let agent = Agent::new(ScriptedModel::new(turns));
        (agent.converse(runner.run(ada())), runner, store)
    };
    // Everything of which the question is made is known in advance.
    let asks = || ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#);
    let (mut foreseen, ..) = begin(vec![asks()]);
    foreseen.send("Go.").await;
    let question = tests::question(&foreseen, "person");

    let (mut conversation, runner, store) = begin(vec![asks(), ScriptedTurn::text("Done.")]);
    let queue = RunQueue::new(&runner);
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    let early = Input::new().decide(&question, ApprovalDecision::Approve, &grace());
    let run = runner.run(ada());
    let refused = run.resume(&question, ApprovalDecision::Approve, &grace()).await.map(drop);
    assert_eq!(refused.expect_err("nothing waits").code(), "not_pending");
    for refused in [
        queue.decide("run-1", &question, ApprovalDecision::Approve, &grace()).await.map(drop),
        queue.post("run-1", Some("acme"), &early).await,
        queue.may_decide("run-1", &question, &grace()).await,
    ] {
        assert_eq!(refused.expect_err("nothing waits").code(), "not_pending");
    }
    assert_eq!(conversation.check(&early).await.expect_err("nothing waits").code(), "not_pending");
    assert_eq!(conversation.receive(early).await.expect_err("nothing waits").code(), "not_pending");
    runner.record_late("run-1", &question, &ApprovalDecision::Approve, &grace()).await.expect("a store");

    let ended = conversation.send("Go.").await;
    assert!(matches!(&ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    assert_eq!(tests::question(&conversation, "person"), question, "it is the one that was foreseen");
    assert!(store.records(&RecordFilter::default()).await.expect("records").is_empty());
    let posts = tool_runtime::store::Query::new(tool_runtime::store::DocumentKind::Post);
    assert!(store.list(&posts).await.expect("a list").is_empty());
    let decided = Input::new().decide(&question, ApprovalDecision::Deny(None), &grace());
    conversation.receive(decided).await.expect("it waits");
    assert_eq!(record(&store, "person").await.outcome, Outcome::ApprovalDenied);
}
