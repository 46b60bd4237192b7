//! Which tools a model is offered, and how it gets the others.

mod loaded;

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tool_runtime::agent::{Agent, DisplayFn, ModelClient, ModelError, ModelRequest, SavedConversation, TurnOutcome};
use tool_runtime::catalog::{CatalogBuilder, PickOptions, Scorer};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::runner::Failure;
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::{Decoded, EncodeOptions, Format, Message};
use tool_runtime::{
    Outcome, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy, ToolRunner, ToolSpec,
};

struct Done;

#[async_trait]
impl DynamicHandler for Done {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!({"done": true}))
    }
}

const TOOLS: &[(&str, &str)] = &[
    ("geo__weather", "Current weather of a city."),
    ("mail__send", "Sends an email."),
    ("money__convert", "Converts an amount of money."),
    ("secret__launch", "Launches the weather rocket."),
    ("tasks__list", "Lists open tasks."),
];

fn tool(name: &str, text: &str) -> DynamicTool {
    let schema = json!({"type": "object", "properties": {}});
    DynamicTool::new(name, text, schema, ToolEffect::ReadOnly, Arc::new(Done)).redact(["done"])
}

/// The tools, and the one that looks for tools.
fn catalog(tools: impl IntoIterator<Item = DynamicTool>) -> ToolCatalog {
    let tools = tools.into_iter().fold(ToolCatalog::builder(), CatalogBuilder::dynamic);
    tools.dynamic(DynamicTool::search_tools()).build().unwrap()
}

fn runner(allowed: &[&str], failures: impl Fn(&Failure<'_>) + Send + Sync + 'static) -> ToolRunner {
    let policy = ToolPolicy::allow(allowed.iter().copied());
    let catalog = catalog(TOOLS.iter().map(|(name, text)| tool(name, text)));
    ToolRunner::builder(catalog, policy).failures(failures).build().unwrap()
}

fn runner_of<'n>(catalog: ToolCatalog, allowed: impl IntoIterator<Item = &'n str>) -> ToolRunner {
    ToolRunner::builder(catalog, ToolPolicy::allow(allowed)).build().unwrap()
}

const ALL: &[&str] = &["geo__weather", "mail__send", "money__convert", "tasks__list", "tools__search"];
const WITHOUT_SEARCH: &[&str] = &["geo__weather", "mail__send", "money__convert", "tasks__list"];

/// A script that keeps the encoded tools and the instructions of each request.
#[derive(Clone)]
struct Watched(Arc<ScriptedModel>, Arc<Mutex<Vec<Seen>>>);

type Seen = (Vec<String>, String, String);

impl Watched {
    fn new(script: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        Self(Arc::new(ScriptedModel::new(script)), Arc::default())
    }

    fn offered(&self) -> Vec<Vec<String>> {
        self.1.lock().unwrap().iter().map(|(names, ..)| names.clone()).collect()
    }

    /// Every request begins like the previous one: tools are only appended, and the instructions stay.
    fn check_prefixes(&self) {
        for pair in self.1.lock().unwrap().windows(2) {
            let [(_, tools, system), (_, later, same)] = pair else { panic!("two") };
            assert!(later.starts_with(tools.trim_end_matches(']')), "{tools}\n{later}");
            assert_eq!(system, same);
        }
    }
}

#[async_trait]
impl ModelClient for Watched {
    fn name(&self) -> &'static str {
        "watched"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let names = request.tools.specs().map(|spec| spec.name.to_string()).collect();
        let encoded = Format::OpenAiChat.encode_tools(request.tools.specs(), &EncodeOptions::default()).unwrap();
        let system = match request.messages.first() {
            Some(Message::System(text)) => text.clone(),
            _ => String::new(),
        };
        let tools = encoded.body.get("tools").map(ToString::to_string).unwrap_or_default();
        self.1.lock().unwrap().push((names, tools, system));
        self.0.complete(request, show).await
    }
}

fn texts(turns: &[&str]) -> Vec<ScriptedTurn> {
    turns.iter().map(|text| ScriptedTurn::text(*text)).collect()
}

#[tokio::test]
async fn each_message_adds_tools_and_none_goes() {
    let model = Watched::new(texts(&["one", "two", "three", "four"]));
    let agent = Agent::new(model.clone()).pick(PickOptions::new(1).always(["tasks__list"]));
    let runner = runner(ALL, |_| {});
    let mut conversation = agent.converse(runner.run(RunOptions::new()));
    conversation.send("What is the weather?").await;
    conversation.send("Send an email.").await;
    conversation.send("And the weather again?").await;
    let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
    let mut conversation = agent.restore(&runner, RunOptions::new(), saved).await.unwrap();
    conversation.send("🙂").await;
    let first = ["tasks__list", "tools__search", "geo__weather"];
    let all = ["tasks__list", "tools__search", "geo__weather", "mail__send"];
    assert_eq!(model.offered(), [first.to_vec(), all.to_vec(), all.to_vec(), all.to_vec()]);
    model.check_prefixes();
}

#[tokio::test]
async fn a_model_finds_what_it_was_not_offered() {
    let model = Watched::new([
        ScriptedTurn::call("c1", "mail__send", "{}"),
        ScriptedTurn::call("c2", "secret__launch", "{}"),
        ScriptedTurn::call("c3", "tools__search", r#"{"query":"send an email about the rocket launch"}"#),
        ScriptedTurn::call("c4", "mail__send", "{}"),
        ScriptedTurn::text("Sent."),
    ]);
    let agent = Agent::new(model.clone()).pick(PickOptions::new(1));
    let runner = runner(ALL, |_| {});
    let mut conversation = agent.converse(runner.run(RunOptions::new()));
    assert!(matches!(conversation.send("What is the weather?").await, TurnOutcome::Answered { .. }));
    let turns = conversation.turns();
    let outcomes: Vec<_> = turns.iter().flat_map(|turn| turn.calls.iter().filter_map(|call| call.outcome)).collect();
    assert_eq!(outcomes[0], Outcome::Unavailable);
    assert_eq!(&outcomes[2..], [Outcome::Ok, Outcome::Ok]);
    let results: Vec<_> = conversation
        .history()
        .into_iter()
        .filter_map(|message| match message {
            Message::Result(result) => Some(serde_json::to_string(&result).unwrap()),
            _ => None,
        })
        .collect();
    assert!(results[0].contains("Load it with `tools__search`"), "{}", results[0]);
    // A tool that the policy hides reads as one that does not exist, and is not found.
    assert!(!results[1].contains("loaded") && !results[1].contains("Load"), "{}", results[1]);
    assert!(results[2].contains("mail__send") && !results[2].contains("secret"), "{}", results[2]);
    // The words that matched nothing, as if the hidden tool did not exist.
    let unmatched = r#"unmatched_words\":[\"rocket\",\"launch\"]"#;
    assert!(results[2].contains(unmatched), "{}", results[2]);
    assert_eq!(model.offered()[3][..3], ["tools__search", "geo__weather", "mail__send"]);
    model.check_prefixes();
}

#[tokio::test]
async fn without_a_search_a_call_loads_its_tool() {
    let model = Watched::new([
        ScriptedTurn::call("c1", "mail__send", "{}"),
        ScriptedTurn::call("c2", "mail__send", "{}"),
        ScriptedTurn::text("Sent."),
    ]);
    let agent = Agent::new(model.clone()).pick(PickOptions::new(1));
    let mut conversation = agent.converse(runner(WITHOUT_SEARCH, |_| {}).run(RunOptions::new()));
    assert!(matches!(conversation.send("What is the weather?").await, TurnOutcome::Answered { .. }));
    assert_eq!(conversation.run().summary().calls.get(&Outcome::Unavailable), Some(&1));
    assert_eq!(conversation.run().summary().calls.get(&Outcome::Ok), Some(&1));
    assert_eq!(model.offered()[0], ["geo__weather"]);
    assert_eq!(model.offered()[1], ["geo__weather", "mail__send"]);
    model.check_prefixes();
}

#[tokio::test]
async fn a_restored_run_is_offered_no_more_than_it_may_see() {
    let model = Watched::new(texts(&["one", "two"]));
    let agent = Agent::new(model.clone()).pick(PickOptions::new(2));
    let mut conversation = agent.converse(runner(ALL, |_| {}).run(RunOptions::new()));
    conversation.send("Send an email about the weather.").await;
    let saved = conversation.save().await.unwrap();
    let narrower = runner(&["geo__weather", "secret__launch"], |_| {});
    let mut conversation = agent.restore(&narrower, RunOptions::new(), &saved).await.unwrap();
    conversation.send("Launch it.").await;
    assert_eq!(model.offered()[1], ["geo__weather"]);
}

#[tokio::test]
async fn a_run_picks_from_what_it_may_see() {
    let run = runner(ALL, |_| {}).run(RunOptions::new().tools(["geo__weather", "tools__search"]));
    let picks = run.pick("weather rocket email", &PickOptions::new(9).always(["mail__send", "secret__launch"]));
    assert_eq!(picks.iter().map(|pick| pick.name.as_str()).collect::<Vec<_>>(), ["geo__weather"]);
    // If an agent does not pick, no tool of the run is withheld.
    let result = run.exec(ToolCall::text("c", "tools__search", r#"{"query":"email weather"}"#)).await;
    assert!(result.to_model().contains("geo__weather") && !result.to_model().contains("mail__send"));
    let result = run.exec(ToolCall::text("d", "geo__weather", "{}")).await;
    assert_eq!(result.outcome(), Outcome::Ok);
}

/// The behaviour of a scorer.
#[derive(Clone, Copy)]
enum Does {
    Scores(&'static [(&'static str, f64)]),
    Fails,
    Panics,
    Never,
}

#[async_trait]
impl Scorer for Does {
    async fn score(&self, _: &str, tools: &[&ToolSpec]) -> Result<Vec<(String, f64)>, Box<dyn Error + Send + Sync>> {
        assert!(tools.iter().all(|tool| tool.name.as_str() != "secret__launch"), "it is not visible");
        match self {
            Self::Scores(scores) => Ok(scores.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect()),
            Self::Fails => Err("no connection".into()),
            Self::Panics => panic!("a bug"),
            Self::Never => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn scores_of_the_application_count_if_they_are_sound() {
    let lexical = "geo__weather";
    for (does, offered, code) in [
        (Does::Scores(&[("mail__send", 0.9), ("tasks__list", 0.2)]), "mail__send", None),
        (Does::Scores(&[("mail__send", f64::NAN)]), lexical, Some("scorer_invalid")),
        (Does::Scores(&[("mail__send", 1.5)]), lexical, Some("scorer_invalid")),
        (Does::Scores(&[("secret__launch", 0.5)]), lexical, Some("scorer_invalid")),
        (Does::Scores(&[("mail__send", 0.5), ("mail__send", 0.6)]), lexical, Some("scorer_invalid")),
        (Does::Fails, lexical, Some("scorer_failed")),
        (Does::Panics, lexical, Some("scorer_panicked")),
        (Does::Never, lexical, Some("scorer_late")),
    ] {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reported);
        let runner = runner(WITHOUT_SEARCH, move |failure| sink.lock().unwrap().push(failure.code.to_owned()));
        let model = Watched::new(texts(&["Done."]));
        let agent = Agent::new(model.clone()).pick(PickOptions::new(1)).scorer(does, Duration::from_millis(50));
        agent.converse(runner.run(RunOptions::new())).send("What is the weather?").await;
        assert_eq!(model.offered(), [[offered]]);
        assert_eq!(reported.lock().unwrap().as_slice(), code.map(ToOwned::to_owned).as_slice());
    }
}
