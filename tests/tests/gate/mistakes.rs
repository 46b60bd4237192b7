//! The refusals that a model reads: they name all mistakes at once, and only repeated mistakes count.

use rmcp::handler::client::ClientHandler;
use rmcp::model::CallToolRequestParams;
use rmcp::service::ServiceExt as _;
use serde_json::{Value, json};
use tests::world::EventLog;
use tool_runtime::agent::{Agent, Conversation, Graph, StopReason, TurnOutcome};
use tool_runtime::call::Violation;
use tool_runtime::mcp::serve::{McpServer, Peer};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::ui::{Protocol, UiEncoder};
use tool_runtime::wire::{Format, Message};
use tool_runtime::{Event, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Lists trains.
#[tool(name = "probe__list", effect = read_only, redact = ["$"])]
fn list() -> Result<Vec<String>, ToolError> {
    Ok(vec!["ICE-7".to_owned()])
}

/// Reserves seats.
#[tool(name = "probe__reserve", effect = read_only, redact = ["$"], validate = pairs(*seats))]
fn reserve(
    /// The train.
    #[arg(evidence = "probe__list")]
    train_id: String,
    /// How many.
    seats: u32,
    /// First or second.
    #[schemars(range(min = 1, max = 2))]
    class: u32,
) -> Result<String, ToolError> {
    Ok(format!("{train_id} {seats} {class}"))
}

fn pairs(seats: u32) -> Result<(), Violation> {
    assert!(seats < 1_000, "an author's hook may count on its schema");
    if seats.is_multiple_of(2) { Ok(()) } else { Err(Violation::of("seats", "an even number")) }
}

/// Changes a booking.
#[tool(name = "probe__update", effect = read_only, redact = ["$"], require_any = [seats, class])]
fn update(
    /// The booking.
    #[schemars(length(min = 4))]
    booking_id: String,
    /// How many.
    seats: Option<u32>,
    /// First or second.
    class: Option<u32>,
) -> Result<String, ToolError> {
    Ok(format!("{booking_id} {seats:?} {class:?}"))
}

fn runner_of(graph: Option<Graph>) -> ToolRunner {
    let catalog = ToolCatalog::builder().collect().namespaces(["probe", "desk"]);
    let mut policy =
        json!({"allowed_tools": ["probe__list", "probe__reserve", "probe__update", "probe__double", "probe__move"]});
    let catalog = match graph {
        Some(graph) => {
            policy["allowed_graphs"] = json!(["desk"]);
            catalog.dynamic(graph)
        }
        None => catalog,
    };
    let policy = ToolPolicy::from_json(&policy.to_string()).expect("a policy");
    ToolRunner::builder(catalog.build().expect("a catalog"), policy).build().expect("a runner")
}

fn run() -> Run {
    runner_of(None).run(RunOptions::new())
}

/// A call and its violations, as pointers with keywords.
async fn wrong(run: &Run, id: &str, name: &str, arguments: Value) -> (Vec<String>, String) {
    let result = run.exec(ToolCall::text(id, name, arguments.to_string())).await;
    let errors = result.error().map(|error| error.errors.clone()).unwrap_or_default();
    (errors.iter().map(|one| format!("{} {}", one.pointer, one.keyword)).collect(), result.to_model())
}

const ASK: &str = "ask the user";

#[tokio::test]
async fn three_mistakes_are_one_message() {
    let run = run();
    let first = json!({"train_id": "ICE-9", "seats": 3, "class": 7});
    let (found, text) = wrong(&run, "1", "probe__reserve", first).await;
    assert_eq!(found, ["/class maximum", "/train_id evidence", "/seats semantic"]);
    assert!(text.contains("call `probe__list`") && !text.contains(ASK));
    assert!(wrong(&run, "2", "probe__list", json!({})).await.0.is_empty());
    assert!(
        wrong(&run, "3", "probe__reserve", json!({"train_id": "ICE-7", "seats": 2, "class": 1})).await.0.is_empty()
    );
}

#[tokio::test]
async fn each_mistake_in_arguments_is_reported_once() {
    let run = run();
    for (name, arguments, expected) in [
        ("probe__update", json!({"booking_id": " "}), &["/booking_id semantic", " require_any"][..]),
        ("probe__update", json!({"booking_id": "b"}), &["/booking_id minLength", " require_any"]),
        ("probe__update", json!({"booking_id": 7, "seats": 1}), &["/booking_id type"]),
        ("probe__reserve", json!({"train_id": "<id>", "seats": 2, "class": 1}), &["/train_id semantic"]),
        ("probe__reserve", json!({"train_id": 7, "seats": 2, "class": 1}), &["/train_id type"]),
        ("probe__reserve", json!({"seats": 3, "class": 1}), &[" required"]),
        // The author's hook may rely on the schema, so its panic is not reported in addition to the real mistake.
        (
            "probe__reserve",
            json!({"train_id": "ICE-9", "seats": 2_000, "class": 9}),
            &["/class maximum", "/train_id evidence"],
        ),
    ] {
        let (found, text) = wrong(&run, &arguments.to_string(), name, arguments.clone()).await;
        assert_eq!(found, expected, "{arguments}: {text}");
    }
}

/// Where a train goes.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    North,
    South,
}

/// Moves bookings.
#[tool(name = "probe__move", effect = read_only, redact = ["$"], require_any = [direction, seats])]
fn moves(
    /// The train.
    #[arg(evidence = "probe__list")]
    #[schemars(length(min = 4), regex(pattern = "^ICE-"))]
    train_id: String,
    /// The bookings.
    #[schemars(length(max = 9))]
    booking_ids: std::collections::BTreeSet<String>,
    /// Who asks.
    #[arg(evidence = "desk__visitors")]
    visitor_id: Option<String>,
    /// Where to.
    direction: Option<Direction>,
    /// How many.
    seats: Option<u32>,
) -> Result<usize, ToolError> {
    let north = matches!(direction, Some(Direction::North));
    let optional = visitor_id.map_or(0, |id| id.len()) + usize::from(north) + usize::from(seats.is_some());
    Ok(train_id.len() + booking_ids.len() + optional)
}

/// Lists visitors, for a desk that this model does not have.
#[tool(name = "desk__visitors", effect = read_only, redact = ["$"])]
fn visitors() -> Result<Vec<String>, ToolError> {
    Ok(vec!["v-1".to_owned()])
}

/// Calls with two and three mistakes: each mistake once, what a model does next, and whether it lists then.
#[tokio::test]
async fn mistakes_of_one_call_are_told_once_and_with_one_way_on() {
    let right = json!({"train_id": "ICE-7", "booking_ids": ["b-1"], "seats": 2});
    let with = |changes: &Value| {
        let mut made = right.clone();
        for (name, value) in changes.as_object().unwrap() {
            made[name] = value.clone();
        }
        made.as_object_mut().unwrap().retain(|_, value| *value != json!("gone"));
        made
    };
    for (changes, expected, lists) in [
        // A blank id is one mistake, whatever its form breaks, and a model that can list it reads that.
        (json!({"train_id": " "}), &["/train_id semantic"][..], true),
        (json!({"train_id": "null"}), &["/train_id semantic"], true),
        (json!({"train_id": "x"}), &["/train_id evidence", "/train_id minLength", "/train_id pattern"], true),
        (json!({"train_id": "ICE-9"}), &["/train_id evidence"], true),
        (json!({"train_id": 7}), &["/train_id type"], true),
        (json!({"train_id": "gone"}), &[" required"], true),
        (json!({"train_id": "gone", "seats": "many"}), &[" required", "/seats type"], true),
        // A name that is written in another way: the schema's whole answer.
        (json!({"train_id": "gone", "trainid": "ICE-7"}), &[" additionalProperties", " required"], false),
        (json!({"seats": "gone", "seat": 2}), &[" additionalProperties", " require_any"], false),
        (json!({"seats": "gone", "other": 2}), &[" additionalProperties", " require_any"], false),
        (json!({"seats": "gone"}), &[" require_any"], false),
        (json!({"seats": "gone", "train_id": " "}), &["/train_id semantic", " require_any"], true),
        // A value of another type: every keyword that it breaks.
        (json!({"direction": 7}), &["/direction enum", "/direction type"], false),
        (json!({"direction": "west"}), &["/direction enum"], false),
        (json!({"seats": -1, "direction": []}), &["/direction enum", "/direction type", "/seats minimum"], false),
        // Two blank ids are two mistakes, and not a third because they are equal.
        (json!({"booking_ids": [" ", " "]}), &["/booking_ids/0 semantic", "/booking_ids/1 semantic"], false),
        (json!({"booking_ids": ["b-1", "b-1"]}), &["/booking_ids uniqueItems"], false),
        // Three mistakes. Next to a tool that lists nothing sends the model to the user.
        (
            json!({"train_id": "ICE-9", "booking_ids": ["-"], "visitor_id": "v-1"}),
            &["/booking_ids/0 semantic", "/train_id evidence", "/visitor_id evidence"],
            true,
        ),
        (
            json!({"train_id": "", "visitor_id": "", "seats": -2}),
            &["/train_id semantic", "/visitor_id semantic", "/seats minimum"],
            true,
        ),
        (json!({"visitor_id": "v-1"}), &["/visitor_id evidence"], false),
    ] {
        let run = runner_of(None).run(RunOptions::new().tools(["probe__move", "probe__list"]));
        run.add_user_text("ICE-7");
        for turn in 1..=2 {
            run.begin_turn();
            let made = with(&changes);
            let (mut found, text) = wrong(&run, &format!("wrong {turn}"), "probe__move", made.clone()).await;
            let mut expected = expected.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{made}: {text}");
            assert_eq!(text.contains("call `probe__list`"), lists, "{made}: {text}");
            // The second refusal asks for the user, unless the model can list.
            let asks = text.to_lowercase().contains(ASK);
            assert!(!(asks && lists), "{made}: {text}");
            assert!(lists || turn == 1 || asks, "{made}: {text}");
        }
        // A model that follows the refusal succeeds with its next call.
        let (found, text) = wrong(&run, "right", "probe__move", right.clone()).await;
        assert!(found.is_empty() && !run.should_end_turn(), "{text}");
    }
}

#[tokio::test]
async fn only_repeated_mistakes_count() {
    let run = run();
    let made = |train: &str, seats: u32, class: u32| json!({"train_id": train, "seats": seats, "class": class});
    run.add_user_text("ICE-7");
    // Each turn another one: the count begins again.
    for (at, (seats, class)) in [(2, 9), (3, 1), (2, 9), (3, 1), (2, 9)].into_iter().enumerate() {
        run.begin_turn();
        let (found, text) = wrong(&run, &at.to_string(), "probe__reserve", made("ICE-7", seats, class)).await;
        assert!(found.len() == 1 && !text.contains(ASK) && !run.should_end_turn(), "{text}");
    }
    assert!(wrong(&run, "right", "probe__reserve", made("ICE-7", 2, 1)).await.0.is_empty());
    // Each turn another argument is missing.
    for (at, missing) in ["train_id", "seats", "class", "seats"].into_iter().enumerate() {
        run.begin_turn();
        let mut arguments = made("ICE-7", 2, 1);
        arguments.as_object_mut().unwrap().remove(missing);
        let (found, text) = wrong(&run, &format!("missing {at}"), "probe__reserve", arguments).await;
        assert!(found == [" required"] && !text.contains(ASK) && !run.should_end_turn(), "{text}");
    }
    assert!(wrong(&run, "right again", "probe__reserve", made("ICE-7", 4, 1)).await.0.is_empty());
    // One of two mistakes stays.
    for (at, (seats, class)) in [(3, 9), (3, 1), (3, 0)].into_iter().enumerate() {
        run.begin_turn();
        let (_, text) = wrong(&run, &format!("again {at}"), "probe__reserve", made("ICE-7", seats, class)).await;
        assert_eq!((text.contains(ASK), run.should_end_turn()), (at > 0, at == 2), "{text}");
    }
    let clarification = run.clarification().expect("the user is asked");
    assert!(
        clarification.contains("probe__reserve") && clarification.contains("`/seats`: an even number"),
        "{clarification}"
    );
    // The user may have helped.
    run.begin_turn();
    let (_, text) = wrong(&run, "helped", "probe__reserve", made("ICE-7", 3, 1)).await;
    assert!(!text.contains(ASK) && !run.should_end_turn());
}

#[tokio::test]
async fn a_hint_to_list_ids_replaces_the_hint_to_ask_the_user() {
    let run = run();
    for at in 1..=3 {
        run.begin_turn();
        let arguments = json!({"train_id": "ICE-9", "seats": 2, "class": 1});
        let (found, text) = wrong(&run, &at.to_string(), "probe__reserve", arguments).await;
        assert_eq!(found, ["/train_id evidence"]);
        assert!(text.contains("call `probe__list`") && !text.to_lowercase().contains(ASK), "{text}");
        assert_eq!(run.should_end_turn(), at == 3);
    }
    // Without the tool that lists, only the user knows.
    let run = runner_of(None).run(RunOptions::new().tools(["probe__reserve"]));
    for at in 1..=2 {
        let arguments = json!({"train_id": "ICE-9", "seats": 2, "class": 1});
        let (_, text) = wrong(&run, &at.to_string(), "probe__reserve", arguments).await;
        assert_eq!(text.contains("This is the second time: ask the user"), at == 2, "{text}");
    }
}

fn turn(id: &str, seats: u32) -> ScriptedTurn {
    let arguments = json!({"train_id": "ICE-7", "seats": seats, "class": 1}).to_string();
    ScriptedTurn::call(id, "probe__reserve", arguments)
}

/// The request for clarification is the last text of the history and of every stream.
#[track_caller]
fn asks(conversation: &Conversation, ended: &TurnOutcome, heard: &EventLog) {
    let TurnOutcome::Stopped { reason: StopReason::AskUser, text } = ended else { panic!("{ended:?}") };
    assert!(text.contains("an even number"), "{text}");
    let messages = conversation.history();
    assert_eq!(messages.iter().filter(|message| message.text() == *text).count(), 1);
    assert!(matches!(messages.last(), Some(message @ Message::Assistant(_)) if message.text() == *text));
    assert_eq!(Message::repair(&messages, |_| true), messages);
    for format in Format::ALL {
        let body = serde_json::to_string(&format.encode_messages(&messages, None).body).unwrap();
        assert!(body.contains("an even number"), "{format}");
    }
    let events = heard.take();
    assert!(events.iter().any(|event| matches!(event, Event::TextDelta { text: shown, .. } if shown == text)));
    for &protocol in Protocol::ALL {
        let mut encoder = UiEncoder::new(protocol);
        let mut bytes: Vec<u8> = events.iter().flat_map(|event| encoder.push_event(event)).collect();
        bytes.extend(encoder.finish());
        assert!(String::from_utf8(bytes).unwrap().contains("I could not call `probe__reserve`"), "{protocol}");
    }
}

#[tokio::test]
async fn a_stopped_conversation_has_a_text_for_the_user() {
    let heard = EventLog::default();
    let runner = runner_of(None);
    let options = || RunOptions::new().run_id("desk").events(heard.sink());
    let turns = [turn("1", 3), turn("2", 5), turn("3", 7), turn("4", 4), ScriptedTurn::text("Reserved.")];
    let agent = Agent::new(ScriptedModel::new(turns));
    let mut conversation = agent.converse(runner.run(options()));
    let ended = conversation.send("Take ICE-7.").await;
    asks(&conversation, &ended, &heard);
    // Asked again, and after a restore, it is the same text, once.
    let saved = conversation.save().await.expect("a document");
    let mut restored = agent.restore(&runner, options(), &saved).await.expect("a conversation");
    let tool_runtime::agent::Step::Ended(ended) = restored.step().await else { panic!("it had ended") };
    assert!(matches!(&ended, TurnOutcome::Stopped { reason: StopReason::AskUser, text } if !text.is_empty()));
    assert_eq!(restored.history(), conversation.history());
    let ended = restored.send("Four, then.").await;
    assert!(matches!(ended, TurnOutcome::Answered { text } if text == "Reserved."));
}

#[tokio::test]
async fn a_model_that_mends_its_call_is_not_stopped() {
    let call = |id: &str, arguments: Value| ScriptedTurn::call(id, "probe__reserve", arguments.to_string());
    let turns = [
        call("1", json!({"train_id": "ICE-9", "seats": 3, "class": 7})),
        call("2", json!({"train_id": "ICE-9", "seats": 3, "class": 1})),
        ScriptedTurn::call("3", "probe__list", "{}"),
        call("4", json!({"train_id": "ICE-7", "seats": 4, "class": 1})),
        ScriptedTurn::text("Reserved."),
    ];
    let agent = Agent::new(ScriptedModel::new(turns));
    let mut conversation = agent.converse(run());
    assert!(matches!(conversation.send("Reserve.").await, TurnOutcome::Answered { .. }));
}

#[tokio::test]
async fn the_count_survives_a_restore() {
    let heard = EventLog::default();
    let runner = runner_of(None);
    let options = || RunOptions::new().run_id("desk").events(heard.sink());
    let agent = Agent::new(ScriptedModel::new([turn("1", 3), turn("2", 5), turn("3", 7)]));
    let mut conversation = agent.converse(runner.run(options()));
    conversation.accept("Take ICE-7.".into()).await.expect("a message");
    // Asked, ran, asked, ran; then another process.
    for _ in 0..4 {
        conversation.step().await;
    }
    let saved = conversation.save().await.expect("a document");
    let mut conversation = agent.restore(&runner, options(), &saved).await.expect("a conversation");
    let ended = loop {
        match conversation.step().await {
            tool_runtime::agent::Step::Ended(ended) => break ended,
            tool_runtime::agent::Step::Waits(_) => panic!("nothing waits"),
            _ => {}
        }
    };
    asks(&conversation, &ended, &heard);
}

#[tokio::test]
async fn a_graph_that_needs_the_user_ends_with_ask_user() {
    let turns = ["1", "2", "3"].map(|id| {
        ScriptedTurn::call(id, "probe__update", json!({"booking_id": "b-1234", "seats": "many"}).to_string())
    });
    let desk =
        Graph::new("desk", "1", Agent::new(ScriptedModel::new(turns))).description("Books.").tools(["probe__update"]);
    let run = runner_of(Some(desk)).run(RunOptions::new());
    let result = run.exec(ToolCall::text("g", "graph__desk", r#"{"task":"Book."}"#)).await;
    let error = result.error().expect("it stopped");
    assert_eq!((error.error_code, error.tool_code.as_deref()), (Outcome::ExecutionError, Some("ask_user")));
    assert!(!run.should_end_turn(), "the mistakes are those of the graph");
}

/// Doubles.
#[tool(name = "probe__double", effect = read_only, redact = ["$"])]
fn double(
    /// A large number.
    n: u128,
    /// Another.
    m: Option<i128>,
    /// One with a bound.
    #[schemars(range(max = 100))]
    few: Option<u128>,
) -> Result<String, ToolError> {
    Ok(format!("{} {m:?} {few:?}", n * 2))
}

#[tokio::test]
async fn an_integer_of_128_bits_is_text_where_it_is_larger_than_64() {
    let large = "18446744073709551616";
    let run = run();
    for (arguments, expected) in [
        (format!(r#"{{"n":"{large}"}}"#), Ok("36893488147419103232 None None")),
        (format!(r#"{{"n":7,"m":"-{large}","few":9}}"#), Ok("14 Some(-18446744073709551616) Some(9)")),
        (r#"{"n":"12"}"#.to_owned(), Ok("24 None None")),
        (r#"{"n":"1e3"}"#.to_owned(), Err("/n pattern")),
        (format!(r#"{{"n":"{}"}}"#, "9".repeat(39)), Err("/n format")),
        (r#"{"n":1,"few":"7"}"#.to_owned(), Err("/few type")),
        (r#"{"n":-1}"#.to_owned(), Err("/n minimum")),
    ] {
        let result = run.exec(ToolCall::text(&*arguments, "probe__double", &*arguments)).await;
        match expected {
            Ok(text) => assert_eq!(result.to_model(), text, "{arguments}"),
            Err(wrong) => {
                let errors = &result.error().expect("it is refused").errors;
                let errors: Vec<_> = errors.iter().map(|one| format!("{} {}", one.pointer, one.keyword)).collect();
                assert_eq!(errors, [wrong], "{arguments}");
            }
        }
    }
    let literal = run.exec(ToolCall::text("literal", "probe__double", format!(r#"{{"n":{large}}}"#))).await;
    assert!(literal.to_model().contains("send it as a string"), "{}", literal.to_model());
}

#[derive(Clone)]
struct Guest;

impl ClientHandler for Guest {}

#[tokio::test]
async fn a_client_of_mcp_is_told_the_same() {
    let admitted = |_: &Peer<'_>| Some(RunOptions::new());
    let server = McpServer::builder(runner_of(None), admitted).build().expect("a server");
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(async move { server.stream(read, write).await });
    let client = Guest.serve(ours).await.expect("a handshake");
    for (at, seats) in [3, 5, 4, 3].into_iter().enumerate() {
        let Value::Object(arguments) = json!({"train_id": "ICE-9", "seats": seats, "class": at + 7}) else { panic!() };
        let request = CallToolRequestParams::new("probe__reserve").with_arguments(arguments);
        let answer = client.call_tool(request).await.expect("an answer");
        let text = &answer.content[0].as_text().expect("a text").text;
        let found = ["/class", "/train_id", "/seats"].map(|place| text.contains(place));
        assert_eq!(found, [true, true, seats % 2 == 1], "{text}");
        // A refusal that names a tool to list with does not ask for the user.
        assert!(text.contains("probe__list") && !text.contains(ASK), "{text}");
    }
}
