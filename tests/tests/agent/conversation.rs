//! The agent loop over a scripted model: waiting calls that another process continues, limits, failures, and a history
//! that stays whole.

mod interrupted;
mod requests;
mod streams;
mod typed;

use std::sync::Arc;
use std::time::Duration;
use tests::DecideShown as _;

use tests::grace;
use tests::world::{self, EventLog};
use tool_runtime::agent::{Agent, Conversation, ModelError, Prices, SavedConversation, StopReason, TurnOutcome};
use tool_runtime::call::{ClientAnswer, Suspension};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::{FinishReason, Format, Message};
use tool_runtime::{Event, Outcome, RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Takes its time.
#[tool(name = "agent__slow", effect = read_only, redact = ["$"])]
async fn slow(
    /// Milliseconds.
    ms: u64,
) -> Result<u64, ToolError> {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(ms)
}

/// Changes something, slowly.
#[tool(name = "agent__change", effect = state_change, redact = ["$"])]
async fn change(
    /// Milliseconds.
    ms: u64,
) -> Result<u64, ToolError> {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(ms)
}

/// Sends something far away.
#[tool(name = "agent__send", effect = external_side_effect, redact = ["$"])]
fn send(
    /// To whom.
    to: String,
    /// What nobody may see.
    #[arg(sensitive)]
    code: String,
) -> Result<String, ToolError> {
    Ok(format!("sent to {to}, {} digits", code.len()))
}

struct Rig {
    runner: ToolRunner,
    heard: EventLog,
    store: Arc<MemoryStore>,
    model: Arc<ScriptedModel>,
}

const POLICY: &str = r#"
    allowed_tools = ["rig__double", "agent__slow", "agent__change", "agent__send", "rig__fail", "rig__cursor"]
    parallel = 16
    require_approval_for_effects = ["external_side_effect"]
"#;

fn runner(policy: &str, store: &Arc<MemoryStore>) -> ToolRunner {
    let policy = ToolPolicy::from_toml(policy).expect("a policy");
    let builder = ToolRunner::builder(world::tools().namespaces(["agent", "rows"]).build().expect("a catalog"), policy)
        .approvals(true);
    builder.store(Arc::clone(store)).build().expect("a runner")
}

fn with_policy(policy: &str, turns: impl IntoIterator<Item = ScriptedTurn>) -> Rig {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(policy, &store);
    Rig { runner, heard: EventLog::default(), store, model: Arc::new(ScriptedModel::new(turns)) }
}

fn rig(turns: impl IntoIterator<Item = ScriptedTurn>) -> Rig {
    with_policy(POLICY, turns)
}

impl Rig {
    fn agent(&self) -> Agent {
        Agent::new(Arc::clone(&self.model))
    }

    fn options(&self) -> RunOptions {
        RunOptions::new().principal("ada").events(self.heard.sink())
    }

    fn converse(&self) -> Conversation {
        self.agent().converse(self.runner.run(self.options()))
    }

    async fn outcomes(&self) -> Vec<(String, Outcome)> {
        let records = self.store.calls(&RecordFilter::default()).await.expect("records");
        records.into_iter().map(|record| (record.tool_call_id.to_string(), record.outcome)).collect()
    }
}

/// The results in a history, by call id.
fn results(history: &[Message]) -> Vec<(String, String, bool)> {
    let result = |message: &Message| match message {
        Message::Result(result) => Some((result.id.to_string(), result.content.clone(), result.is_error)),
        _ => None,
    };
    history.iter().filter_map(result).collect()
}

/// Every call is followed by its one result, and the history goes back to every provider.
#[track_caller]
fn is_whole(conversation: &Conversation) {
    let history = conversation.history();
    assert_eq!(Message::repair(&history, |_| true), history);
    for format in Format::ALL {
        assert!(!format.encode_messages(&history, None).body.is_empty());
    }
}

#[track_caller]
fn stopped(ended: TurnOutcome) -> StopReason {
    match ended {
        TurnOutcome::Stopped { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn six_turns_of_all_kinds() {
    let rig = rig([
        ScriptedTurn::call("a", "rig__double", r#"{"n":1}"#).and_call("b", "rig__double", r#"{"n":2}"#),
        ScriptedTurn::call("c", "rig__fail", "{}"),
        ScriptedTurn::call("d", "rig__denied", "{}").and_call("e", "agent__nonsense", "{}"),
        ScriptedTurn::call("f", "rig__double", r#"{"n":"#),
        ScriptedTurn::call("g", "rig__cursor", r#"{"file":"a.rs"}"#).and_call("h", "rig__double", r#"{"n":4}"#),
        ScriptedTurn::text("All done.").using(10, 5),
    ]);
    let mut conversation = rig.agent().parallel(4).converse(rig.runner.run(rig.options()));
    let TurnOutcome::Waiting { calls } = conversation.send("Go.").await else { panic!("the client has to act") };
    assert_eq!((calls.len(), calls[0].name.as_str(), calls[0].suspension), (1, "rig__cursor", Suspension::Client));
    assert_eq!(calls[0].payload.as_ref().map(tool_runtime::call::JsonText::get), Some("\"a.rs\""));
    is_whole(&conversation);
    assert_eq!(rig.heard.done(), ["client_required"]);
    let ended = conversation.answer([ClientAnswer::value("g", "7")]).await.expect("it waits");
    assert!(matches!(&ended, TurnOutcome::Answered { text } if text == "All done."), "{ended:?}");
    assert_eq!(rig.heard.done(), ["answered"]);
    is_whole(&conversation);
    let results = results(&conversation.history());
    let ids: Vec<_> = results.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e", "f", "g", "h"], "results stand in call order");
    let contents: Vec<_> = results.iter().map(|(_, content, _)| content.as_str()).collect();
    assert_eq!((contents[0], contents[1], contents[6], contents[7]), ("2", "4", "7", "8"));
    assert!(contents[2].contains("It always fails") && contents[5].contains("invalid_json"));
    let refusal = |content: &str| content.replace("rig__denied", "X").replace("agent__nonsense", "X");
    assert_eq!(refusal(contents[3]), refusal(contents[4]), "denied and unknown read alike");
    let summary = conversation.run().summary();
    assert_eq!((summary.usage.total(), summary.calls[&Outcome::Ok]), (15, 4));
    assert_eq!(conversation.turns().len(), 6);
    assert_ne!(conversation.turns()[0].prompt_hash, conversation.turns()[1].prompt_hash);
}

#[tokio::test(start_paused = true)]
async fn reading_calls_run_together_and_effects_alone() {
    let calls = |first: &str| {
        ScriptedTurn::call("1", first, r#"{"ms":100}"#)
            .and_call("2", "agent__slow", r#"{"ms":90}"#)
            .and_call("3", "agent__slow", r#"{"ms":80}"#)
            .and_call("4", "agent__slow", r#"{"ms":70}"#)
    };
    let raised = "[tools.agent__slow]\neffect = \"state_change\"";
    for (first, agent, policy, extra, expected) in [
        ("agent__slow", Some(1), 16, "", 340),
        ("agent__slow", Some(2), 16, "", 170),
        ("agent__slow", Some(9), 16, "", 100),
        ("agent__change", Some(9), 16, "", 190),
        // The policy's limit counts, and the agent can only lower it.
        ("agent__slow", None, 1, "", 340),
        ("agent__slow", None, 2, "", 170),
        ("agent__slow", Some(9), 2, "", 170),
        ("agent__slow", Some(9), 1, "", 340),
        // A tool with an effect that the policy raises no longer counts as reading.
        ("agent__slow", Some(9), 16, raised, 340),
    ] {
        let policy = POLICY.replace("parallel = 16", &format!("parallel = {policy}"));
        let rig = with_policy(&format!("{policy}\n{extra}"), [calls(first), ScriptedTurn::text("ok")]);
        let agent = agent.map_or_else(|| rig.agent(), |calls| rig.agent().parallel(calls));
        let mut conversation = agent.converse(rig.runner.run(rig.options()));
        let started = tokio::time::Instant::now();
        conversation.send("Go.").await;
        assert_eq!(started.elapsed().as_millis() / 10 * 10, expected, "{first} {agent:?} {policy} {extra}");
        let contents: Vec<_> = results(&conversation.history()).into_iter().map(|(_, content, _)| content).collect();
        assert_eq!(contents, ["100", "90", "80", "70"]);
    }
}

#[tokio::test]
async fn a_hand_over_survives_the_process() {
    let turns = [ScriptedTurn::call("x", "rig__double", r#"{"n":3}"#)
        .and_call("g", "rig__cursor", r#"{"file":"a.rs"}"#)
        .and_call("s", "agent__send", r#"{"to":"bob","code":"1234"}"#)];
    let first = rig(turns);
    let mut conversation = first.converse();
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    let document = serde_json::to_string(&conversation.save().await.expect("saved")).expect("JSON");
    drop((conversation, first));

    let second = rig([ScriptedTurn::text("Done.")]);
    let saved: SavedConversation = serde_json::from_str(&document).expect("a document");
    let other = second.agent().restore(&second.runner, RunOptions::new().principal("eve"), saved.clone()).await;
    assert_eq!(other.expect_err("another user").code(), "other_principal");
    let mut conversation = second.agent().restore(&second.runner, second.options(), saved).await.expect("restored");
    assert_eq!(conversation.waiting().count(), 2);
    let unknown = conversation.answer([ClientAnswer::value("s", "1")]).await.expect_err("it waits for a person");
    assert_eq!(unknown.code(), "not_pending");
    assert_eq!(second.heard.done(), ["not_pending"], "a stream of events ends, also when an answer is refused");
    let ended = conversation.answer([ClientAnswer::value("g", "7")]).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Waiting { ref calls } if calls.len() == 1), "{ended:?}");
    assert!(conversation.answer([ClientAnswer::value("g", "7")]).await.is_err(), "an answer counts once");
    assert_eq!(second.heard.done(), ["approval_required", "not_pending"]);
    let ended = conversation.decide_shown(&"s".into(), ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    let contents: Vec<_> = results(&conversation.history()).into_iter().map(|(_, content, _)| content).collect();
    assert_eq!(contents, ["6", "7", "sent to bob, 4 digits"]);
    assert_eq!(second.heard.done(), ["answered"]);
    is_whole(&conversation);
}

#[tokio::test]
async fn a_new_message_abandons_waiting_calls() {
    let rig = rig([
        ScriptedTurn::call("g", "rig__cursor", r#"{"file":"a.rs"}"#).and_call(
            "s",
            "agent__send",
            r#"{"to":"b","code":"1"}"#,
        ),
        ScriptedTurn::text("Fine."),
    ]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    assert!(matches!(conversation.send("Never mind.").await, TurnOutcome::Answered { .. }));
    let results = results(&conversation.history());
    // The client may have executed its call; the other call waited for a person.
    for ((_, content, failed), why) in results.iter().zip(["returned no result", "got no decision"]) {
        assert!(*failed && content.contains(why), "{results:?}");
    }
    assert_eq!(rig.outcomes().await.iter().filter(|(_, outcome)| *outcome == Outcome::Cancelled).count(), 2);
    assert!(rig.store.open_records(&RecordFilter::default()).await.expect("records").is_empty());
    is_whole(&conversation);
}

#[tokio::test]
async fn the_model_reads_that_a_client_failed() {
    let rig = rig([ScriptedTurn::call("g", "rig__cursor", r#"{"file":"a.rs"}"#), ScriptedTurn::text("Pity.")]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    let failed = ClientAnswer::Failed { id: "g".into() };
    assert!(matches!(conversation.answer([failed]).await, Ok(TurnOutcome::Answered { .. })));
    assert!(results(&conversation.history())[0].1.contains("could not execute"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_future_leaves_a_whole_history() {
    let rig =
        rig([
            ScriptedTurn::call("a", "rig__double", r#"{"n":3}"#)
                .and_call("b", "agent__change", r#"{"ms":1000}"#)
                .and_call("c", "rig__double", r#"{"n":4}"#),
            ScriptedTurn::text("I see."),
        ]);
    let mut conversation = rig.converse();
    let turn = tokio::time::timeout(Duration::from_millis(100), conversation.send("Go."));
    assert!(turn.await.is_err());
    assert_eq!(rig.heard.done(), ["cancelled"]);
    is_whole(&conversation);
    let told = |conversation: &Conversation| {
        let results = results(&conversation.history());
        results.into_iter().map(|(_, content, _)| content).collect::<Vec<_>>()
    };
    let contents = told(&conversation);
    assert!(contents[1].contains("outcome_unknown") && contents[2].contains("cancelled"), "{contents:?}");
    conversation.send("What happened?").await;
    let results = results(&conversation.history());
    let contents: Vec<_> = results.iter().map(|(_, content, _)| content.as_str()).collect();
    assert_eq!(contents[0], "6", "what had a result keeps it");
    assert!(contents[1].contains("outcome_unknown"), "an effect that had begun is not said to have failed");
    assert!(contents[2].contains("cancelled"));
    is_whole(&conversation);
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_model_and_tool() {
    for turns in [vec![ScriptedTurn::hangs()], vec![ScriptedTurn::call("b", "agent__change", r#"{"ms":100000}"#)]] {
        let rig = rig(turns);
        let mut conversation = rig.converse();
        let run = conversation.run().clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            run.cancel();
        });
        assert!(matches!(stopped(conversation.send("Go.").await), StopReason::Cancelled));
        assert_eq!(rig.heard.done(), ["cancelled"]);
        is_whole(&conversation);
    }
}

#[tokio::test]
async fn limits_end_a_turn() {
    let again = |at: u8| ScriptedTurn::call(at.to_string(), "rig__double", format!(r#"{{"n":{at}}}"#)).using(60, 40);
    let limited = rig((0..3).map(again));
    let mut conversation = limited.agent().max_turns(3).converse(limited.runner.run(limited.options()));
    assert!(matches!(stopped(conversation.send("Go.").await), StopReason::TurnLimit));
    is_whole(&conversation);

    let tokens = format!("{POLICY}\n[budgets.run]\ntokens = 150");
    let limited = with_policy(&tokens, (0..2).map(again));
    assert!(matches!(stopped(limited.converse().send("Go.").await), StopReason::Budget(_)));

    let cost = format!("{POLICY}\n[budgets.run]\ncost = 0.5");
    let limited = with_policy(&cost, (0..2).map(again));
    let mut conversation =
        limited.agent().prices(Prices::new(2000.0, 4000.0)).converse(limited.runner.run(limited.options()));
    assert!(matches!(stopped(conversation.send("Go.").await), StopReason::Budget(_)));

    for kind in ["input_tokens = 120", "output_tokens = 80"] {
        let limited = with_policy(&format!("{POLICY}\n[budgets.run]\n{kind}"), (0..2).map(again));
        let StopReason::Budget(exceeded) = stopped(limited.converse().send("Go.").await) else { panic!("{kind}") };
        assert!(kind.starts_with(exceeded.key().trim_start_matches("budgets.run.")), "{exceeded}");
    }

    // A run without calls left may still answer.
    let calls = format!("{POLICY}\n[budgets.run]\ncalls = 1");
    let limited = with_policy(&calls, [again(1), again(2), ScriptedTurn::text("That is all.")]);
    assert!(matches!(limited.converse().send("Go.").await, TurnOutcome::Answered { .. }));
}

#[tokio::test]
async fn the_third_bad_turn_ends_it() {
    let bad = |id: &str| ScriptedTurn::call(id, "rig__double", r#"{"n":"many"}"#);
    let rig = rig([bad("1"), bad("2"), bad("3")]);
    let mut conversation = rig.converse();
    assert!(matches!(stopped(conversation.send("Go.").await), StopReason::AskUser));
    assert!(results(&conversation.history())[1].1.contains("ask the user"));
    is_whole(&conversation);
}

#[tokio::test]
async fn no_call_of_an_incomplete_turn_runs() {
    for finish in [
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::Error,
        FinishReason::Truncated,
        FinishReason::Refusal,
    ] {
        let step = ScriptedTurn::call("a", "rig__double", r#"{"n":1}"#).and_call("b", "rig__double", r#"{"n":"#);
        let rig = rig([step.ending(finish), ScriptedTurn::text("Again.")]);
        let mut conversation = rig.converse();
        let reason = stopped(conversation.send("Go.").await);
        assert!(matches!(reason, StopReason::Incomplete { finish: of, .. } if of == finish), "{reason:?}");
        let outcomes = rig.outcomes().await;
        assert!(outcomes.iter().all(|(_, outcome)| *outcome == Outcome::IncompleteCall) && outcomes.len() == 2);
        assert!(matches!(conversation.send("Go on.").await, TurnOutcome::Answered { .. }));
        is_whole(&conversation);
    }
}

#[tokio::test]
async fn a_conversation_continues_after_a_model_error() {
    let rig = rig([ScriptedTurn::fails(ModelError::refused(401, "scripted")), ScriptedTurn::text("Back again.")]);
    let mut conversation = rig.converse();
    let reason = stopped(conversation.send("Hello?").await);
    assert_eq!(reason.code(), "model_unauthorised");
    let events = rig.heard.take();
    assert!(events.iter().any(|event| matches!(event, Event::Error { code, .. } if code == "model_unauthorised")));
    assert!(matches!(conversation.send("Still there?").await, TurnOutcome::Answered { .. }));
}

#[tokio::test]
async fn ids_that_a_provider_uses_again_stay_apart() {
    let again = |n: u8| ScriptedTurn::call("call_0", "rig__double", format!(r#"{{"n":{n}}}"#));
    let rig = rig([again(1), again(2), ScriptedTurn::text("ok")]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    let results = results(&conversation.history());
    assert_eq!(results.iter().map(|(_, content, _)| content.as_str()).collect::<Vec<_>>(), ["2", "4"]);
    assert_ne!(results[0].0, results[1].0);
    is_whole(&conversation);
}

#[tokio::test]
async fn argument_text_of_sensitive_tools_is_not_shown() {
    let rig = rig([ScriptedTurn::call("s", "agent__send", r#"{"to":"bob","code":"9876"}"#).and_call(
        "d",
        "rig__double",
        r#"{"n":5}"#,
    )]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    let events = rig.heard.take();
    let text = serde_json::to_string(&events).expect("events");
    assert!(!text.contains("9876"), "{text}");
    assert!(events.iter().any(|event| matches!(event, Event::ToolCallDelta { id, .. } if id.as_str() == "d")));
}

#[tokio::test]
async fn a_sink_changes_nothing() {
    let turns = || [ScriptedTurn::call("a", "rig__double", r#"{"n":1}"#), ScriptedTurn::text("2")];
    let (listened, alone) = (rig(turns()), rig(turns()));
    let mut one = listened.converse();
    one.send("Go.").await;
    let panicking = |_: Event| panic!("a sink that fails");
    let mut two = alone.agent().converse(alone.runner.run(RunOptions::new().principal("ada").events(panicking)));
    two.send("Go.").await;
    assert_eq!(one.history(), two.history());
}
