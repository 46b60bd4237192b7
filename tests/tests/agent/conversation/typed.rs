//! Typed answers: as text and as a call, with tools and approvals in between. An invalid answer is repaired once, and
//! an answer never passes through the gate.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_runtime::agent::{AnswerError, Input};
use tool_runtime::wire::RequestSettings;

use super::*;

#[derive(Debug, Deserialize, PartialEq, JsonSchema)]
struct Sum {
    /// The number.
    #[schemars(range(min = 0, max = 100))]
    total: u32,
    /// What to say of it.
    note: Option<String>,
}

fn sum(total: u32) -> Sum {
    Sum { total, note: None }
}

/// Accepts less than its schema.
#[derive(Debug, Deserialize, PartialEq, JsonSchema)]
#[serde(try_from = "Raw")]
struct Even(u32);

#[derive(Deserialize, JsonSchema)]
struct Raw {
    n: u32,
}

impl TryFrom<Raw> for Even {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        if raw.n.is_multiple_of(2) { Ok(Self(raw.n)) } else { Err(format!("{} CANARY is odd", raw.n)) }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Endless {
    #[allow(dead_code, reason = "the schema is what counts")]
    next: Option<Box<Endless>>,
}

fn answer(json: &str) -> ScriptedTurn {
    ScriptedTurn::call("z", "final_answer", json)
}

/// The last text of the user that the model read.
fn told(rig: &Rig) -> String {
    rig.model.asked().last().and_then(|messages| messages.last().map(Message::text)).unwrap_or_default()
}

#[tokio::test]
async fn an_answer_is_in_no_debug_output() {
    let unfit = || ScriptedTurn::text(r#"{"total":"CANARY"}"#);
    let ended = rig([unfit()]).converse().send("Go.").await;
    let error = rig([unfit(), unfit()]).converse().ask::<Sum>("Go.").await.expect_err("unfit");
    assert!(matches!(&error, AnswerError::Stopped { text, .. } if text.contains("CANARY")));
    let shown = format!("{ended:?} {error:?} {error}");
    assert!(!shown.contains("CANARY"), "{shown}");
}

#[tokio::test]
async fn an_answer_comes_as_text_or_as_a_call() {
    for last in [ScriptedTurn::text(r#" {"total":2,"note":null} "#), answer(r#"{"total":2}"#)] {
        let rig = rig([ScriptedTurn::call("a", "rig__double", r#"{"n":1}"#), last]);
        let mut conversation = rig.converse();
        assert_eq!(conversation.ask::<Sum>("Double 1.").await.expect("an answer"), sum(2));
        let history = conversation.history();
        let text = history.last().map(Message::text).unwrap_or_default();
        assert!(text.contains(r#"{"total":2"#) && history.last().is_some_and(|last| last.calls().next().is_none()));
        is_whole(&conversation);
        // The answer is not a call: it does not appear at the gate, in a record or in an event.
        assert_eq!(rig.outcomes().await, [("a".to_owned(), Outcome::Ok)]);
        let events = serde_json::to_string(&rig.heard.take()).expect("JSON");
        assert!(events.ends_with(r#"{"type":"done","reason":"answered"}]"#), "{events}");
        assert!(!events.contains("final_answer") && events.contains("total"), "it is shown as text: {events}");
        assert_eq!(conversation.turns()[1].calls.len(), 0);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_repaired_once() {
    let wrong = [r#"{"total":"CANARY"}"#, r#"{"total":777123}"#, r#"{"other":"CANARY"}"#, "CANARY", "[7]", "", "{"];
    for (at, text) in wrong.into_iter().enumerate() {
        for by_call in [false, true] {
            let bad = || if by_call { answer(text) } else { ScriptedTurn::text(text) };
            let mended = rig([bad(), ScriptedTurn::text(r#"{"total":7}"#)]);
            let mut conversation = mended.converse();
            assert_eq!(conversation.ask::<Sum>("How many?").await.expect("an answer"), sum(7), "{at}");
            assert!(told(&mended).contains("expected"), "{}", told(&mended));
            assert!(!told(&mended).contains("CANARY") && !told(&mended).contains("777"), "{}", told(&mended));
            is_whole(&conversation);

            let hopeless = rig([bad(), bad(), ScriptedTurn::text("Free text again.")]);
            let mut conversation = hopeless.converse();
            let error = conversation.ask::<Sum>("How many?").await.expect_err("it never fits");
            assert!(matches!(&error, AnswerError::Stopped { reason: StopReason::InvalidAnswer(_), .. }), "{error:?}");
            assert!(!error.to_string().contains("CANARY") && !error.to_string().contains("777"), "{error}");
            assert_eq!(hopeless.heard.done(), ["invalid_answer"]);
            is_whole(&conversation);
            // The next message does not ask for a typed answer.
            assert!(matches!(conversation.send("Never mind.").await, TurnOutcome::Answered { .. }));
            assert!(hopeless.outcomes().await.is_empty());
        }
    }
}

#[tokio::test]
async fn what_only_the_type_refuses_is_repaired_too() {
    let mended = rig([ScriptedTurn::text(r#"{"n":3}"#), ScriptedTurn::text(r#"{"n":4}"#)]);
    assert_eq!(mended.converse().ask::<Even>("An even number.").await.expect("an answer"), Even(4));
    let hopeless = rig([ScriptedTurn::text(r#"{"n":3}"#), ScriptedTurn::text(r#"{"n":5}"#)]);
    let error = hopeless.converse().ask::<Even>("An even number.").await.expect_err("odd");
    assert!(!format!("{error} {}", told(&hopeless)).contains("CANARY"), "{error}");
}

#[tokio::test]
async fn an_answer_beside_calls_waits_for_them() {
    let early = answer(r#"{"total":0}"#).and_call("a", "rig__double", r#"{"n":1}"#);
    let rig = rig([early, answer(r#"{"total":2}"#)]);
    let mut conversation = rig.converse();
    assert_eq!(conversation.ask::<Sum>("Double 1.").await.expect("an answer"), sum(2));
    let results = results(&conversation.history());
    assert_eq!((results.len(), results[0].2, results[1].1.as_str()), (2, true, "2"), "{results:?}");
    is_whole(&conversation);
    assert_eq!(rig.outcomes().await, [("a".to_owned(), Outcome::Ok)]);
}

#[tokio::test]
async fn an_answer_and_a_call_of_one_id_are_two() {
    let early = answer(r#"{"total":0}"#).and_call("z", "rig__double", r#"{"n":1}"#);
    let rig = rig([early, answer(r#"{"total":2}"#)]);
    let mut conversation = rig.converse();
    assert_eq!(conversation.ask::<Sum>("Double 1.").await.expect("an answer"), sum(2));
    let results = results(&conversation.history());
    assert_eq!((results.len(), results[0].2, results[1].1.as_str()), (2, true, "2"), "{results:?}");
    assert_ne!(results[0].0, results[1].0);
    is_whole(&conversation);
}

#[tokio::test(start_paused = true)]
async fn clients_persons_and_a_dropped_future_come_in_between() {
    let both = ScriptedTurn::call("s", "agent__send", r#"{"to":"ada","code":"1234"}"#)
        .and_call("c", "rig__cursor", r#"{"file":"a"}"#)
        .and_call("z", "final_answer", r#"{"total":9}"#);
    let rig = rig([both, ScriptedTurn::hangs(), ScriptedTurn::text(r#"{"total":101}"#), answer(r#"{"total":7}"#)]);
    let agent = rig.agent().settings(RequestSettings::new().temperature(0.5));
    let mut conversation = agent.converse(rig.runner.run(rig.options()));
    let asked = Input::new().text("Send it.").settings(RequestSettings::new().temperature(0.1).seed(7));
    let waiting = conversation.ask::<Sum>(asked).await.expect_err("two wait");
    assert!(matches!(&waiting, AnswerError::Waiting(calls) if calls.len() == 2), "{waiting:?}");
    let saved = conversation.save().await.expect("saved");
    let mut conversation = agent.restore(&rig.runner, rig.options(), saved).await.expect("restored");
    let answered = Input::new().answer(ClientAnswer::value("c", "7"));
    let waiting = conversation.ask::<Sum>(answered).await.expect_err("one waits");
    assert!(matches!(&waiting, AnswerError::Waiting(calls) if calls.len() == 1), "{waiting:?}");
    let decision = Input::new().decide(&tests::question(&conversation, "s"), ApprovalDecision::Approve, &grace());
    let dropped = tokio::time::timeout(Duration::from_millis(50), conversation.ask::<Sum>(decision)).await;
    assert!(dropped.is_err(), "the model hangs");
    let saved = serde_json::to_string(&conversation.save().await.expect("saved")).expect("JSON");
    let saved: SavedConversation = serde_json::from_str(&saved).expect("a document");
    let mut conversation = agent.restore(&rig.runner, rig.options(), saved).await.expect("restored");
    is_whole(&conversation);
    assert_eq!(conversation.ask::<Sum>(Input::new()).await.expect("repaired"), sum(7));
    assert!(told(&rig).contains("at most 100") || told(&rig).contains("100"), "{}", told(&rig));
    is_whole(&conversation);
    for settings in rig.model.settings() {
        assert_eq!((settings.temperature, settings.seed), (Some(0.1), Some(7)), "of the message, after restores too");
    }
    let mut outcomes = rig.outcomes().await;
    outcomes.sort();
    assert_eq!(outcomes, [("c".to_owned(), Outcome::Ok), ("s".to_owned(), Outcome::Ok)]);
}

#[tokio::test]
async fn an_answer_of_an_unclean_end_is_none() {
    for finish in [FinishReason::Length, FinishReason::Truncated, FinishReason::ContentFilter] {
        let rig = rig([answer(r#"{"total":2}"#).ending(finish)]);
        let mut conversation = rig.converse();
        let error = conversation.ask::<Sum>("Double 1.").await.expect_err("cut");
        assert!(matches!(error, AnswerError::Stopped { reason: StopReason::Incomplete { .. }, .. }), "{error:?}");
        assert!(rig.outcomes().await.is_empty(), "and nothing reached the gate");
        is_whole(&conversation);
    }
}

#[tokio::test]
async fn approvals_saves_and_restores_come_in_between() {
    let send = ScriptedTurn::call("s", "agent__send", r#"{"to":"ada","code":"1234"}"#);
    let rig = rig([send, ScriptedTurn::text("Sent."), answer(r#"{"total":1}"#)]);
    let mut conversation = rig.converse();
    let waiting = conversation.ask::<Sum>("Send it, and say how many were sent.").await.expect_err("it waits");
    assert!(matches!(&waiting, AnswerError::Waiting(calls) if calls.len() == 1), "{waiting:?}");
    let saved = serde_json::to_string(&conversation.save().await.expect("saved")).expect("JSON");
    let saved: SavedConversation = serde_json::from_str(&saved).expect("a document");
    let mut conversation = rig.agent().restore(&rig.runner, rig.options(), saved).await.expect("restored");
    let refused = conversation
        .ask::<Sum>(Input::new().decide(&tests::question(&conversation, "x"), ApprovalDecision::Approve, &grace()))
        .await;
    assert!(matches!(refused, Err(AnswerError::NotWaiting(_))));
    let decision = Input::new().decide(&tests::question(&conversation, "s"), ApprovalDecision::Approve, &grace());
    assert_eq!(conversation.ask::<Sum>(decision).await.expect("an answer"), sum(1), "the words alone did not fit");
    is_whole(&conversation);
    assert_eq!(rig.outcomes().await, [("s".to_owned(), Outcome::Ok)]);
}

#[tokio::test]
async fn a_restored_request_keeps_its_form_without_the_type() {
    let send = ScriptedTurn::call("s", "agent__send", r#"{"to":"ada","code":"1234"}"#);
    let rig = rig([send, ScriptedTurn::text("Sent."), ScriptedTurn::text(r#"{"total":1}"#)]);
    let mut conversation = rig.converse();
    assert!(conversation.ask::<Sum>("Send it.").await.is_err());
    let saved = conversation.save().await.expect("saved");
    let mut conversation = rig.agent().restore(&rig.runner, rig.options(), saved).await.expect("restored");
    let ended = conversation
        .receive(Input::new().decide(&tests::question(&conversation, "s"), ApprovalDecision::Approve, &grace()))
        .await;
    assert!(matches!(ended, Ok(TurnOutcome::Answered { text }) if text == r#"{"total":1}"#));
}

#[tokio::test]
async fn a_list_and_a_type_that_holds_one_are_two() {
    #[derive(Debug, Deserialize, PartialEq, JsonSchema)]
    struct Holds {
        answer: Vec<u32>,
    }

    let send = ScriptedTurn::call("s", "agent__send", r#"{"to":"ada","code":"1234"}"#);
    let rig = rig([send, ScriptedTurn::text(r#"{"answer":[1]}"#)]);
    let mut conversation = rig.converse();
    assert!(conversation.ask::<Vec<u32>>("Send it, and list them.").await.is_err());
    let decision = Input::new().decide(&tests::question(&conversation, "s"), ApprovalDecision::Approve, &grace());
    assert_eq!(conversation.ask::<Holds>(decision).await.expect("an answer"), Holds { answer: vec![1] });
}

#[tokio::test]
async fn any_type_that_a_schema_can_describe_is_an_answer() {
    let list = rig([ScriptedTurn::text("[1,2]"), ScriptedTurn::text(r#"{"answer":[1,2]}"#)]);
    assert_eq!(list.converse().ask::<Vec<u32>>("List them.").await.expect("a list"), [1, 2]);
    let text = rig([answer(r#"{"answer":"yes"}"#)]);
    assert_eq!(text.converse().ask::<String>("Yes or no?").await.expect("a text"), "yes");
    let map = rig([ScriptedTurn::text(r#"{"a":1}"#)]);
    let counts = map.converse().ask::<BTreeMap<String, u32>>("Count them.").await.expect("a map");
    assert_eq!(counts, BTreeMap::from([("a".to_owned(), 1)]));
    let none = rig([]);
    let error = none.converse().ask::<Endless>("Forever?").await.expect_err("it has no schema");
    assert!(matches!(&error, AnswerError::Schema(problems) if !problems.is_empty()), "{error}");
    assert!(none.model.asked().is_empty());
}
