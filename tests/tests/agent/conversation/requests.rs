//! One request to a conversation: several inputs together, an event sink of the request's own, and the information that
//! a person needs to decide.

use std::sync::Mutex;

use tool_runtime::agent::{DisplayFn, Input, ModelClient, ModelError, ModelRequest};
use tool_runtime::call::{DecisionError, Question};
use tool_runtime::runner::Failure;
use tool_runtime::wire::{Decoded, RequestSettings, ToolChoice};

use super::*;

fn two_that_wait() -> ScriptedTurn {
    ScriptedTurn::call("g", "rig__cursor", r#"{"file":"a.rs"}"#).and_call(
        "s",
        "agent__send",
        r#"{"to":"bob","code":"1234"}"#,
    )
}

/// If one of several decisions does not fit, all their calls still wait. A single one that does not fit has a result.
#[tokio::test]
async fn decisions_of_one_request_take_effect_together() {
    let two = ScriptedTurn::call("a", "agent__send", r#"{"to":"bob","code":"1234"}"#).and_call(
        "b",
        "agent__send",
        r#"{"to":"eve","code":"12"}"#,
    );
    let rig = rig([two, ScriptedTurn::text("Done.")]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    let [a, b] = ["a", "b"].map(|id| tests::question(&conversation, id));
    let edit = |text: &str| ApprovalDecision::ApproveEdited(text.to_owned());
    let both = |decision: ApprovalDecision| {
        Input::new().decide(&a, ApprovalDecision::Approve, &grace()).decide(&b, decision, &grace())
    };
    for bad in [edit(r#"{"to":7,"code":"CANARY"}"#), ApprovalDecision::Respond("[1]".to_owned())] {
        for refused in [
            conversation.check(&both(bad.clone())).await.expect_err("it does not fit"),
            conversation.accept(both(bad.clone())).await.expect_err("it does not fit"),
            conversation.receive(both(bad.clone())).await.expect_err("it does not fit"),
        ] {
            assert_eq!(refused.code(), "approval_mismatch");
            assert!(!refused.to_string().contains("CANARY"), "{refused}");
        }
        assert_eq!(conversation.waiting().count(), 2, "nothing was taken");
    }
    // The decision that fits is recorded as refused together with the other one.
    let records = rig.store.records(&RecordFilter::default()).await.expect("records");
    let of = |id: &str| {
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        let refused = decisions.filter(|one| one.call_id.as_str() == id).filter(|one| one.refused().is_some());
        refused.map(tool_runtime::store::DecisionRecord::mismatch).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), [Some(DecisionError::NotPending); 6]);
    assert_eq!(of("b"), [None; 6]);
    // Alone, it is a result.
    let alone = Input::new().decide(&b, edit(r#"{"to":7,"code":"1"}"#), &grace());
    let ended = conversation.receive(alone).await.expect("it still waits");
    let TurnOutcome::Waiting { calls } = ended else { panic!("{ended:?}") };
    assert!(calls[1].refused.is_some());
    let ended = conversation.receive(both(edit(r#"{"to":"eve","code":"7"}"#))).await.expect("both fit");
    assert!(matches!(ended, TurnOutcome::Answered { ref text } if text == "Done."), "{ended:?}");
}

/// A request with many decisions on one call is refused, and few of them are recorded.
#[tokio::test]
async fn many_decisions_on_one_call_are_refused_together() {
    let same = |input: Input, question: &Question, _| input.decide(question, ApprovalDecision::Approve, &grace());
    let guess = |input: Input, _: &Question, number| {
        let guess = format!("{number:064x}.s").parse().expect("a question");
        input.decide(&guess, ApprovalDecision::Deny(Some("CANARY".to_owned())), &grace())
    };
    for decide in [&same as &dyn Fn(Input, &Question, u32) -> Input, &guess] {
        let rig = rig([two_that_wait()]);
        let mut conversation = rig.converse();
        conversation.send("Go.").await;
        let question = tests::question(&conversation, "s");
        let many = (0..500).fold(Input::new(), |input, number| decide(input, &question, number));
        let before = rig.store.records(&RecordFilter::default()).await.expect("records").len();
        assert_eq!(conversation.receive(many).await.expect_err("refused").code(), "not_pending");
        let records = rig.store.records(&RecordFilter::default()).await.expect("records");
        assert!((1..=16).contains(&(records.len() - before)), "{}", records.len() - before);
        let decide = Input::new().decide(&question, ApprovalDecision::Approve, &grace());
        conversation.check(&decide).await.expect("it still waits");
    }
}

#[tokio::test]
async fn one_request_decides_answers_and_says() {
    let rig = rig([two_that_wait(), ScriptedTurn::text("Done."), ScriptedTurn::text("Bye.")]);
    let mut conversation = rig.converse();
    conversation.send("Go.").await;
    let account: Vec<_> = conversation.turns()[0].calls.iter().map(|call| call.outcome).collect();
    assert_eq!(account, [Some(Outcome::ClientRequired), Some(Outcome::ApprovalRequired)]);
    let [send, cursor] = ["s", "g"].map(|id| tests::question(&conversation, id));
    let whole = || {
        Input::new()
            .decide(&send, ApprovalDecision::Approve, &grace())
            .answer(ClientAnswer::value("g", "7"))
            .text("Thanks.")
    };
    for wrong in [
        whole().answer(ClientAnswer::value("g", "8")),
        whole().decide(&send, ApprovalDecision::Deny(None), &grace()),
        whole().decide(&cursor, ApprovalDecision::Approve, &grace()),
        whole().answer(ClientAnswer::value("s", "1")),
        whole().answer(ClientAnswer::value("unheard of", "1")),
    ] {
        assert!(conversation.check(&wrong).await.is_err(), "{wrong:?}");
        assert_eq!(conversation.receive(wrong).await.expect_err("refused").code(), "not_pending");
        assert_eq!(conversation.waiting().count(), 2, "nothing was taken");
        let events = rig.heard.take();
        let is_error = |event: &Event| matches!(event, Event::Error { code, .. } if code == "not_pending");
        assert!(events.iter().any(is_error), "{events:?}");
    }
    assert!(conversation.check(&whole()).await.is_ok());
    let ended = conversation.receive(whole()).await.expect("they wait");
    assert!(matches!(ended, TurnOutcome::Answered { ref text } if text == "Done."), "{ended:?}");
    let account: Vec<_> = conversation.turns()[0].calls.iter().map(|call| call.outcome).collect();
    assert_eq!(account, [Some(Outcome::Ok); 2]);
    let history = conversation.history();
    let contents: Vec<_> = results(&history).into_iter().map(|(_, content, _)| content).collect();
    assert_eq!(contents, ["7", "sent to bob, 4 digits"]);
    let asked = rig.model.asked();
    assert!(asked[1].last() == Some(&Message::user("Thanks.")), "after the results");
    conversation.send("Bye.").await;
    is_whole(&conversation);
}

#[tokio::test(start_paused = true)]
async fn an_empty_request_continues_an_interrupted_turn() {
    let rig = rig([ScriptedTurn::call("b", "agent__slow", r#"{"ms":1000}"#), ScriptedTurn::text("Here.")]);
    let mut conversation = rig.converse();
    assert!(tokio::time::timeout(Duration::from_millis(10), conversation.send("Go.")).await.is_err());
    let ended = conversation.receive(Input::new()).await.expect("nothing to refuse");
    assert!(matches!(ended, TurnOutcome::Answered { ref text } if text == "Here."), "{ended:?}");
    is_whole(&conversation);
}

#[tokio::test]
async fn a_call_that_waits_says_what_a_person_has_to_know() {
    let rig = rig([two_that_wait()]);
    let mut conversation = rig.converse();
    let TurnOutcome::Waiting { calls } = conversation.send("Go.").await else { panic!("it waits") };
    let shown: Vec<_> = calls.iter().map(|call| call.shown_arguments.as_ref().expect("arguments").get()).collect();
    assert_eq!(shown[0], r#"{"file":"a.rs"}"#);
    assert!(shown[1].contains(r#""to":"bob""#) && !shown[1].contains("1234"), "{}", shown[1]);
    assert_eq!(calls[1].rule.as_deref(), Some("require_approval_for_effects"));
    assert!(calls.iter().all(|call| call.expires_at.is_some()));
    let saved = conversation.save().await.expect("saved");
    let document = serde_json::to_string(&saved).expect("JSON");
    let saved: SavedConversation = serde_json::from_str(&document).expect("a document");
    let listed: Vec<_> = saved.waiting().map(|call| (call.id.as_str(), call.shown_arguments.is_some())).collect();
    assert_eq!(listed, [("g", true), ("s", true)]);
    assert_eq!(saved.run().run_id(), conversation.run().id());
}

#[tokio::test]
async fn each_request_has_a_sink_of_its_own() {
    let rig = rig([two_that_wait(), ScriptedTurn::text("Done.")]);
    let mut conversation = rig.converse();
    let (first, second) = (Arc::new(EventLog::default()), Arc::new(EventLog::default()));
    let sink = |heard: &Arc<EventLog>| {
        let (heard, take) = (Arc::clone(heard), heard.sink());
        move |event| {
            let _ = &heard;
            take(event);
        }
    };
    conversation.events(sink(&first));
    conversation.send("Go.").await;
    conversation.events(sink(&second));
    let input = Input::new()
        .decide(&tests::question(&conversation, "s"), ApprovalDecision::Approve, &grace())
        .answer(ClientAnswer::value("g", "7"));
    conversation.receive(input).await.expect("they wait");
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1), "released after `done`");
    assert_eq!(rig.heard.done(), ["client_required", "answered"], "the run's own sink hears all");
    let first = first.take();
    assert!(matches!(&first[..], [.., Event::Done { reason, .. }] if reason == "client_required"), "{first:?}");
    let second = second.take();
    assert!(second.iter().any(|event| matches!(event, Event::ToolCallResult { id, .. } if id.as_str() == "s")));
    assert!(matches!(&second[..], [.., Event::Done { reason, .. }] if reason == "answered"), "{second:?}");
}

#[tokio::test]
async fn refusals_and_empty_answers_are_reported() {
    let rig = rig([
        ScriptedTurn::refuses("I cannot help with that."),
        ScriptedTurn::text(" \n"),
        ScriptedTurn::text("").using(3, 0),
        ScriptedTurn::text("Hello."),
    ]);
    let mut conversation = rig.converse();
    let TurnOutcome::Stopped { reason, text } = conversation.send("Harm.").await else { panic!("no answer") };
    assert_eq!((reason.code(), text.as_str()), ("refusal", "I cannot help with that."));
    let shown = rig.heard.take();
    assert!(shown.iter().any(|event| matches!(event, Event::TextDelta { text, .. } if text.contains("cannot help"))));
    let said = |message: &Message| matches!(message, Message::Assistant(_)) && message.text().contains("cannot help");
    assert!(conversation.history().iter().any(said), "the refusal is part of the history");
    for _ in 0..2 {
        assert_eq!(stopped(conversation.send("Hello?").await).code(), "empty_answer");
        is_whole(&conversation);
    }
    assert!(matches!(conversation.send("Hello?").await, TurnOutcome::Answered { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_emits_a_status_event() {
    let rig = rig([ScriptedTurn::hangs()]);
    let mut conversation = rig.converse();
    assert!(tokio::time::timeout(Duration::from_secs(75), conversation.send("Hello?")).await.is_err());
    let status = |event: Event| match event {
        Event::Status { text, .. } => Some(text),
        _ => None,
    };
    let told: Vec<_> = rig.heard.take().into_iter().filter_map(status).collect();
    let expected = [10, 30, 70].map(|seconds| format!("The model has been silent for {seconds} seconds."));
    assert_eq!(told, expected);
}

/// A model whose provider fails within its answer.
struct Broken;

#[async_trait::async_trait]
impl ModelClient for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    async fn complete(&self, _: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let mut decoder = Format::OpenAiChat.decoder();
        decoder.push_with(b"data: {\"error\":{\"message\":\"quota of project 7\"}}\n\n", show);
        Ok(decoder.finish())
    }
}

/// A client of a model that panics in one of four places: in `name`, in `complete`, in a poll of its future, or when
/// the future is dropped.
struct Panics(&'static str);

impl Panics {
    fn at(&self, place: &str) {
        assert!(self.0 != place, "CANARY-{place}");
    }
}

impl ModelClient for Panics {
    fn name(&self) -> &'static str {
        self.at("name");
        "panics"
    }

    fn complete<'a, 'b, 'c, 'd, 'e>(
        &'a self,
        _: ModelRequest<'b>,
        _: &'c mut DisplayFn<'d>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Decoded, ModelError>> + Send + 'e>>
    where
        'a: 'e,
        'b: 'e,
        'c: 'e,
        'd: 'e,
        Self: 'e,
    {
        struct Bomb(bool);
        impl Drop for Bomb {
            fn drop(&mut self) {
                assert!(!self.0, "CANARY-drop");
            }
        }
        self.at("call");
        Box::pin(async {
            let _bomb = Bomb(self.0 == "drop");
            tokio::task::yield_now().await;
            self.at("poll");
            Err(ModelError::timeout("late"))
        })
    }
}

#[tokio::test]
async fn a_model_that_panics_stops_its_turn_only() {
    for place in ["name", "call", "poll", "drop"] {
        let rig = rig([ScriptedTurn::text("Here I am.")]);
        let told: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let sink = Arc::clone(&told);
        let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
        let runner =
            ToolRunner::builder(world::tools().namespaces(["agent", "rows"]).build().expect("a catalog"), policy)
                .approvals(true)
                .failures(move |failure: &Failure<'_>| {
                    sink.lock().expect("no poison").push((failure.code.to_owned(), failure.text.to_owned()));
                })
                .build()
                .expect("a runner");
        let agent = Agent::new(Panics(place));
        let mut conversation = agent.converse(runner.run(rig.options()));
        let reason = stopped(conversation.send("Hello?").await);
        assert_eq!(reason.code(), "model_panicked", "{place}");
        assert!(!reason.to_string().contains("CANARY"), "{place}");
        let told = std::mem::take(&mut *told.lock().expect("no poison"));
        assert_eq!(told, [("model_panicked".to_owned(), format!("CANARY-{place}"))], "{place}");
        assert_eq!(rig.heard.done(), ["model_panicked"], "{place}");
        is_whole(&conversation);
        // The conversation continues, here with a model that works.
        let saved = conversation.save().await.expect("a store");
        let mut conversation = rig.agent().restore(&runner, rig.options(), saved).await.expect("a run");
        assert!(matches!(conversation.send("Hello?").await, TurnOutcome::Answered { .. }), "{place}");
        is_whole(&conversation);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_can_be_corrected() {
    let rig = rig([ScriptedTurn::call("c", "rig__cursor", r#"{"file":"a.rs"}"#), ScriptedTurn::text("Line 7.")]);
    let mut conversation = rig.converse();
    assert!(matches!(conversation.send("Where am I?").await, TurnOutcome::Waiting { .. }));
    drop(rig.heard.take());
    let ended = conversation.answer([ClientAnswer::value("c", "\"seven\"")]).await.expect("it waits");
    let TurnOutcome::Waiting { calls } = ended else { panic!("it still waits: {ended:?}") };
    let refused = calls[0].refused.as_ref().expect("why");
    assert_eq!((refused.error_code, refused.errors[0].keyword.as_str()), (Outcome::ApprovalMismatch, "type"));
    let events = rig.heard.take();
    let told = |event: &&Event| matches!(event, Event::Error { code, .. } if code == "approval_mismatch");
    assert_eq!(events.iter().filter(told).count(), 1, "{events:?}");
    // Another process shows the cause, too, and accepts the right answer.
    let saved = serde_json::to_string(&conversation.save().await.expect("a store")).expect("JSON");
    let saved: SavedConversation = serde_json::from_str(&saved).expect("a document");
    let mut conversation = rig.agent().restore(&rig.runner, rig.options(), saved).await.expect("a run");
    assert!(conversation.waiting().next().expect("it waits").refused.is_some());
    let ended = conversation.answer([ClientAnswer::value("c", "7")]).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    is_whole(&conversation);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_told_beside_a_message_too() {
    let rig = rig([ScriptedTurn::call("c", "rig__cursor", r#"{"file":"a.rs"}"#), ScriptedTurn::text("Never mind.")]);
    let mut conversation = rig.converse();
    assert!(matches!(conversation.send("Where am I?").await, TurnOutcome::Waiting { .. }));
    drop(rig.heard.take());
    let both = Input::new().answer(ClientAnswer::value("c", "\"seven\"")).text("Line seven.");
    let ended = conversation.receive(both).await.expect("it waited");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    let events = rig.heard.take();
    let told = |event: &&Event| matches!(event, Event::Error { code, .. } if code == "approval_mismatch");
    assert_eq!(events.iter().filter(told).count(), 1, "{events:?}");
    assert_eq!(conversation.waiting().count(), 0, "the message gave the call up");
    is_whole(&conversation);
}

/// A model whose provider reads most of the prompt from a cache; the answer may break off.
struct Cached(&'static str);

#[async_trait::async_trait]
impl ModelClient for Cached {
    fn name(&self) -> &'static str {
        "cached"
    }

    async fn complete(&self, _: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let mut decoder = Format::Anthropic.decoder();
        let usage =
            r#"{"input_tokens":3,"cache_read_input_tokens":48000,"cache_creation_input_tokens":100,"output_tokens":1}"#;
        let start = format!(
            "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"id\":\"m\",\"type\":\"message\",\
             \"role\":\"assistant\",\"content\":[],\"model\":\"x\",\"usage\":{usage}}}}}\n\n"
        );
        decoder.push_with(start.as_bytes(), &mut *show);
        decoder.push_with(self.0.as_bytes(), show);
        Ok(decoder.finish())
    }
}

#[tokio::test]
async fn tokens_from_a_cache_count_and_so_do_those_of_a_broken_answer() {
    const TEXT: &str = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
        data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    for (rest, written, reason) in [(TEXT, 5, "answered"), ("", 1, "truncated")] {
        let rig = with_policy(&format!("{POLICY}\n[budgets.run]\ntokens = 48000"), []);
        let agent = Agent::new(Cached(rest)).prices(Prices::new(1.0, 1.0));
        let mut conversation = agent.converse(rig.runner.run(rig.options()));
        assert_eq!(conversation.send("Hello?").await.code(), reason);
        let usage = conversation.run().summary().usage;
        assert_eq!((usage.total_input(), usage.total_output()), (48_103, written), "{reason}");
        assert!(conversation.run().summary().cost > 0.0, "{reason}");
        // The budget of 48,000 is used up: 3 tokens alone would have left it.
        assert_eq!(stopped(conversation.send("Again?").await).code(), "budget_exceeded", "{reason}");
    }
}

#[tokio::test]
async fn operators_learn_why_models_and_tools_failed() {
    let script = [
        ScriptedTurn::call("a", "rig__fail", "{}"),
        ScriptedTurn::text("It failed."),
        ScriptedTurn::fails(ModelError::refused(401, "as the script says")),
    ];
    let rig = rig(script);
    let failures: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&failures);
    let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
    let runner = ToolRunner::builder(world::tools().namespaces(["agent", "rows"]).build().expect("a catalog"), policy)
        .approvals(true);
    let runner = runner.failures(move |failure: &Failure<'_>| {
        assert_eq!(failure.run_id, Some("run-1"));
        let line = format!("{} {} {}", failure.code, failure.tool.unwrap_or("-"), failure.text);
        seen.lock().expect("no poison").push(line);
    });
    let runner = runner.build().expect("a runner");
    let mut conversation = rig.agent().converse(runner.run(rig.options().run_id("run-1")));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Answered { .. }));
    assert_eq!(stopped(conversation.send("Again.").await).code(), "model_unauthorised");
    let mut broken = Agent::new(Broken).converse(runner.run(rig.options().run_id("run-1")));
    assert_eq!(stopped(broken.send("Go.").await).code(), "model_error");
    let failures = failures.lock().expect("no poison");
    let expected =
        ["execution_error rig__fail", "model_unauthorised - as the script says", "model_error - quota of project 7"];
    assert_eq!(failures.len(), expected.len(), "{failures:?}");
    for (failure, expected) in failures.iter().zip(expected) {
        assert!(failure.starts_with(expected), "{failure}");
    }
    let events = serde_json::to_string(&rig.heard.take()).expect("JSON");
    assert!(!events.contains("project 7") && !events.contains("as the script says"), "{events}");
}

#[tokio::test]
async fn a_forced_choice_holds_for_the_first_turn() {
    let turns = || [ScriptedTurn::call("a", "rig__double", r#"{"n":1}"#), ScriptedTurn::text("2")];
    let subset = |required| ToolChoice::Allowed { names: vec!["rig__fail".to_owned()], required };
    for (choice, expected) in [
        (ToolChoice::Required, [Some(ToolChoice::Required), None]),
        (ToolChoice::Named("rig__double".to_owned()), [Some(ToolChoice::Named("rig__double".to_owned())), None]),
        (subset(true), [Some(subset(true)), None]),
        (subset(false), [Some(subset(false)), Some(subset(false))]),
        (ToolChoice::None, [Some(ToolChoice::None), Some(ToolChoice::None)]),
    ] {
        let rig = rig(turns());
        let agent = rig.agent().settings(RequestSettings::new().tool_choice(choice.clone()));
        let mut conversation = agent.converse(rig.runner.run(rig.options()));
        assert!(matches!(conversation.send("Go.").await, TurnOutcome::Answered { .. }));
        let asked: Vec<_> = rig.model.settings().into_iter().map(|settings| settings.tool_choice).collect();
        assert_eq!(asked, expected, "{choice:?}");
        let flagged = conversation.turns()[0].calls[0].outside_choice;
        let outside = matches!(choice, ToolChoice::None | ToolChoice::Allowed { .. });
        assert_eq!(flagged, outside, "a call outside the choice is flagged: {choice:?}");
        assert_eq!(conversation.turns()[0].calls[0].outcome, Some(Outcome::Ok), "and the gate decides");
    }
}

/// A request without an answer does not use up the forced choice, in the same process and after a restore.
#[tokio::test]
async fn a_forced_choice_outlasts_a_failed_request() {
    for restored in [false, true] {
        let failed = || ScriptedTurn::fails(ModelError::refused(503, "busy"));
        let call = ScriptedTurn::call("a", "rig__double", r#"{"n":1}"#);
        let rig = rig([ScriptedTurn::text("Hello."), failed(), failed(), call, failed(), ScriptedTurn::text("2")]);
        let mut conversation = rig.converse();
        conversation.send("Hi.").await;
        let forced = RequestSettings::new().tool_choice(ToolChoice::Required);
        let mut input = Input::from("Go.").settings(forced);
        for _ in 0..3 {
            let ended = conversation.receive(std::mem::take(&mut input)).await.expect("taken");
            assert_eq!(stopped(ended).code(), "model_refused");
            if restored {
                let saved = conversation.save().await.expect("saved");
                conversation = rig.agent().restore(&rig.runner, rig.options(), saved).await.expect("restored");
            }
        }
        assert!(matches!(conversation.receive(Input::new()).await, Ok(TurnOutcome::Answered { .. })));
        let asked: Vec<_> = rig.model.settings().into_iter().map(|settings| settings.tool_choice).collect();
        let required = || Some(ToolChoice::Required);
        assert_eq!(asked, [None, required(), required(), required(), None, None], "{restored}");
    }
}
