//! Turns that were dropped, and the results that the model reads of their calls: in this process, and in another one
//! with a separate store.

use super::*;
use tests::DecideShown as _;
use tool_runtime::agent::Input;
use tool_runtime::runner::ResumeError;

const NAMES: [&str; 3] = ["agent__slow", "agent__change", "agent__slow"];

/// A turn of three calls, dropped while the second one runs; and the conversation.
async fn interrupted(rig: &Rig, second: &str) -> Conversation {
    let mut conversation = rig.converse();
    let turn = tokio::time::timeout(Duration::from_millis(100), conversation.send("Go."));
    assert!(turn.await.is_err(), "{second} is still running");
    conversation
}

fn calls(second: &str) -> ScriptedTurn {
    ScriptedTurn::call("a", NAMES[0], r#"{"ms":1}"#).and_call("b", second, r#"{"ms":1000}"#).and_call(
        "c",
        NAMES[2],
        r#"{"ms":1}"#,
    )
}

fn codes(conversation: &Conversation) -> Vec<String> {
    let code = |(_, content, _): (_, String, _)| {
        let value: serde_json::Value = serde_json::from_str(&content).unwrap_or_default();
        value["errorCode"].as_str().map_or(content, ToOwned::to_owned)
    };
    results(&conversation.history()).into_iter().map(code).collect()
}

/// The document goes through text, as it would between two processes.
async fn another_process(rig: &Rig, conversation: &Conversation, policy: &str) -> (Rig, Conversation) {
    let document = serde_json::to_string(&conversation.save().await.expect("saved")).expect("JSON");
    let other = with_policy(policy, [ScriptedTurn::text("I see.")]);
    let saved: SavedConversation = serde_json::from_str(&document).expect("a document");
    let conversation = other.agent().restore(&other.runner, rig.options(), &saved).await.expect("restored");
    (other, conversation)
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_may_have_begun_is_never_reported_as_cancelled() {
    let raised = format!("{POLICY}\n[tools.agent__slow]\neffect = \"external_side_effect\"");
    let raised = raised.replace("require_approval_for_effects", "# require_approval_for_effects");
    for (policy, second, expected) in [
        (POLICY, "agent__change", ["1", "outcome_unknown", "cancelled"]),
        // A tool that only reads can be called again.
        (&POLICY.replace("parallel = 16", "parallel = 1"), "agent__slow", ["1", "cancelled", "cancelled"]),
        // The policy declares that it does more than read.
        (&raised, "agent__slow", ["1", "outcome_unknown", "cancelled"]),
    ] {
        let rig = with_policy(policy, [calls(second), ScriptedTurn::text("I see.")]);
        let mut conversation = interrupted(&rig, second).await;
        assert_eq!(codes(&conversation), expected, "immediately: {policy}");
        is_whole(&conversation);
        let (_other, mut elsewhere) = another_process(&rig, &conversation, policy).await;
        assert_eq!(codes(&elsewhere), expected, "in another process: {policy}");
        elsewhere.send("And now?").await;
        assert_eq!(codes(&elsewhere), expected, "in another process, after a message: {policy}");
        conversation.send("And now?").await;
        assert_eq!(codes(&conversation), expected, "after a message: {policy}");
        let outcomes: Vec<_> = conversation.turns()[0].calls.iter().map(|call| call.outcome).collect();
        let codes: Vec<_> = outcomes.iter().map(|outcome| outcome.map_or("none", |outcome| outcome.code())).collect();
        assert_eq!(codes[1..], expected[1..], "the account says the same");
        is_whole(&conversation);
    }
}

/// A process ends suddenly: its last document is from the moment before the calls had results.
#[tokio::test(start_paused = true)]
async fn a_document_without_results_says_what_may_have_begun() {
    let rig = rig([calls("agent__change")]);
    let conversation = interrupted(&rig, "agent__change").await;
    let saved = serde_json::to_value(conversation.save().await.expect("saved")).expect("JSON");
    let mut killed = saved.clone();
    for (at, progress) in [(1, "running"), (2, "queued")] {
        killed["state"]["open"][at]["progress"] = progress.into();
    }
    assert_ne!(saved, killed);
    let other = super::rig([ScriptedTurn::text("I see.")]);
    let killed: SavedConversation = serde_json::from_value(killed).expect("a document");
    let mut conversation = other.agent().restore(&other.runner, rig.options(), killed).await.expect("restored");
    assert_eq!(codes(&conversation), ["1", "outcome_unknown", "cancelled"]);
    conversation.send("And now?").await;
    assert_eq!(codes(&conversation), ["1", "outcome_unknown", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_decision_is_not_reported_as_cancelled() {
    let policy = POLICY.replace("\"external_side_effect\"", "\"state_change\"");
    let call = || ScriptedTurn::call("b", "agent__change", r#"{"ms":1000}"#);
    let rig = with_policy(&policy, [call(), ScriptedTurn::text("I see.")]);
    let mut conversation = rig.converse();
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    let waits = conversation.save().await.expect("saved");
    let id = "b".into();
    let grace = grace();
    let decision = conversation.decide_shown(&id, ApprovalDecision::Approve, &grace);
    assert!(tokio::time::timeout(Duration::from_millis(100), decision).await.is_err());
    assert_eq!(conversation.waiting().count(), 0, "it was decided");
    assert_eq!(codes(&conversation), ["outcome_unknown"]);
    let (_other, mut elsewhere) = another_process(&rig, &conversation, &policy).await;
    assert_eq!(codes(&elsewhere), ["outcome_unknown"]);
    elsewhere.send("And now?").await;
    assert_eq!(codes(&elsewhere), ["outcome_unknown"]);
    // A document from before the decision, over the store that has the decision.
    let mut again = rig.agent().restore(&rig.runner, rig.options(), waits).await.expect("restored");
    let ended =
        again.decide_shown(&id, ApprovalDecision::Approve, &grace).await.expect("the document says that it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(codes(&again), ["outcome_unknown"], "it was decided elsewhere, once");
    assert_eq!(rig.outcomes().await, [("b".to_owned(), Outcome::OutcomeUnknown)]);
}

/// Without an account the tokens of a principal cannot be counted, so the model is not asked. No call waits.
#[tokio::test]
async fn a_store_that_fails_before_a_request_ends_it() {
    let rig = rig([ScriptedTurn::text("Hello.")]);
    let fault = world::Fault::default();
    let policy = format!("{POLICY}\n[budgets.principal]\ninput_tokens = 1000\nwindow = \"1h\"\n");
    let policy = ToolPolicy::from_toml(&policy).expect("a policy");
    let builder = ToolRunner::builder(world::tools().namespaces(["agent", "rows"]).build().expect("a catalog"), policy);
    let runner = builder.approvals(true).store(fault.over(Arc::clone(&rig.store) as _)).build().expect("a runner");
    let mut conversation = rig.agent().converse(runner.run(rig.options()));
    fault.fail(true);
    assert!(matches!(stopped(conversation.send("Go.").await), StopReason::Unsettled(ResumeError::Store(_))));
    assert_eq!((conversation.waiting().count(), conversation.turns().len()), (0, 0));
    fault.fail(false);
    let ended = conversation.receive(Input::new()).await.expect("nothing waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}

/// The store fails while a decision is applied: the call still waits, and the next attempt finishes it.
#[tokio::test]
async fn a_store_that_fails_loses_no_decision() {
    let rig = rig([ScriptedTurn::call("s", "agent__send", r#"{"to":"bob","code":"1"}"#), ScriptedTurn::text("Sent.")]);
    let fault = world::Fault::default();
    let store = fault.over(Arc::clone(&rig.store) as _);
    let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
    let builder = ToolRunner::builder(world::tools().namespaces(["agent", "rows"]).build().expect("a catalog"), policy)
        .approvals(true);
    let runner = builder.store(store).build().expect("a runner");
    let mut conversation = rig.agent().converse(runner.run(rig.options()));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    for _ in 0..2 {
        fault.fail(true);
        let ended =
            conversation.decide_shown(&"s".into(), ApprovalDecision::Approve, &grace()).await.expect("it waits");
        assert!(matches!(stopped(ended), StopReason::Unsettled(_)));
        assert!(matches!(stopped(conversation.send("Never mind.").await), StopReason::Unsettled(_)));
        assert_eq!(conversation.waiting().count(), 1);
        fault.fail(false);
    }
    let ended = conversation.decide_shown(&"s".into(), ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(codes(&conversation), ["sent to bob, 1 digits"]);
    is_whole(&conversation);
}

/// Run ids and call ids can come from a request. A conversation looks up its own calls only.
#[tokio::test]
async fn a_call_of_other_people_is_not_looked_up() {
    let send = || ScriptedTurn::call("s", "agent__send", r#"{"to":"bob","code":"1234"}"#);
    let rig = rig([send(), ScriptedTurn::text("I see.")]);
    let options = |principal: &str| RunOptions::new().run_id("run-1").principal(principal);
    let mut owner = rig.agent().converse(rig.runner.run(options("ada")));
    assert!(matches!(owner.send("Go.").await, TurnOutcome::Waiting { .. }));
    // The same conversation of somebody else, interrupted before its call was suspended.
    let mut document = serde_json::to_value(owner.save().await.expect("saved")).expect("JSON");
    document["run"]["principal"] = "mallory".into();
    document["run"]["waiting"] = serde_json::json!([]);
    document["state"]["open"][0]["progress"] = "running".into();
    let saved: SavedConversation = serde_json::from_value(document).expect("a document");
    let mut theirs = rig.agent().restore(&rig.runner, options("mallory"), saved).await.expect("restored");
    let ended = theirs.receive(Input::new()).await.expect("an empty request");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(theirs.waiting().count(), 0);
    assert!(owner.waiting().next().expect("it waits").shown_arguments.as_ref().expect("shown").get().contains("bob"));
}
