//! When a tool is loaded, and the result that a model reads if it calls the tool before.

use tool_runtime::agent::{Agent, Conversation, Input, ModelTurn};
use tool_runtime::catalog::PickOptions;
use tool_runtime::testing::ScriptedTurn;
use tool_runtime::wire::{Message, RequestSettings, ToolChoice};
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolCatalog, ToolEffect, ToolPolicy, ToolRunner};

use crate::picking::{ALL, WITHOUT_SEARCH, Watched, catalog, runner, runner_of, texts, tool};

const MAIL: &str = "mail__send";
const SEARCH: &str = "tools__search";

fn outcomes(conversation: &Conversation) -> Vec<Outcome> {
    let of = |turn: &ModelTurn| turn.calls.iter().filter_map(|call| call.outcome).collect::<Vec<_>>();
    conversation.turns().iter().flat_map(of).collect()
}

/// The results that the model reads, in the order of its calls.
fn results(conversation: &Conversation) -> Vec<String> {
    let history = conversation.history();
    let result = |message: &Message| match message {
        Message::Result(result) => Some(serde_json::to_string(result).unwrap()),
        _ => None,
    };
    history.iter().filter_map(result).collect()
}

/// Whatever the order of the calls of a turn, a tool does not run before the model has read its definition.
#[tokio::test]
async fn what_is_found_in_a_turn_runs_in_the_next() {
    let search = r#"{"query":"send an email"}"#;
    for is_first in [true, false] {
        let both = if is_first {
            ScriptedTurn::call("c1", SEARCH, search).and_call("c2", MAIL, "{}")
        } else {
            ScriptedTurn::call("c2", MAIL, "{}").and_call("c1", SEARCH, search)
        };
        let turns = [both, ScriptedTurn::call("c3", MAIL, "{}"), ScriptedTurn::text("Sent.")];
        let model = Watched::new(turns);
        let agent = Agent::new(model.clone()).pick(PickOptions::new(1));
        let mut conversation = agent.converse(runner(ALL, |_| {}).run(RunOptions::new()));
        conversation.send("What is the weather?").await;
        let found = outcomes(&conversation);
        assert_eq!(found.iter().filter(|one| **one == Outcome::Unavailable).count(), 1, "{found:?}");
        assert_eq!(found.last(), Some(&Outcome::Ok));
        model.check_prefixes();
    }
}

#[tokio::test]
async fn two_calls_of_a_tool_that_is_not_loaded_both_wait_for_its_definition() {
    let model = Watched::new([
        ScriptedTurn::call("c1", MAIL, "{}").and_call("c2", MAIL, "{}"),
        ScriptedTurn::call("c3", MAIL, "{}"),
        ScriptedTurn::text("Sent."),
    ]);
    let agent = Agent::new(model.clone()).pick(PickOptions::new(1));
    let mut conversation = agent.converse(runner(WITHOUT_SEARCH, |_| {}).run(RunOptions::new()));
    conversation.send("What is the weather?").await;
    assert_eq!(outcomes(&conversation), [Outcome::Unavailable, Outcome::Unavailable, Outcome::Ok]);
    assert!(results(&conversation)[..2].iter().all(|read| read.contains("It is loaded now")));
}

#[tokio::test]
async fn a_tool_that_the_choice_names_is_offered() {
    for choice in
        [ToolChoice::Named(MAIL.to_owned()), ToolChoice::Allowed { names: vec![MAIL.to_owned()], required: true }]
    {
        let model = Watched::new(texts(&["one", "two"]));
        let agent = Agent::new(model.clone()).pick(PickOptions::new(1));
        let mut conversation = agent.converse(runner(WITHOUT_SEARCH, |_| {}).run(RunOptions::new()));
        conversation.send("What is the weather?").await;
        let settings = RequestSettings::new().tool_choice(choice);
        conversation.receive(Input::from("Tell Ada.").settings(settings)).await.unwrap();
        assert_eq!(model.offered()[1], ["geo__weather", MAIL]);
        model.check_prefixes();
    }
}

/// A model that is told to load a tool gets it by its name, among any number of tools of the same words.
#[tokio::test]
async fn a_tool_is_found_by_its_name() {
    let names: Vec<_> = (0..60).map(|at| format!("shop{at}__get_order")).chain(["shop__get_order".into()]).collect();
    let tools = names.iter().map(|name| tool(name, "Gets an order, a shop and an order of a shop."));
    let runner = runner_of(catalog(tools), names.iter().map(String::as_str).chain([SEARCH]));
    let run = runner.run(RunOptions::new());
    for query in ["shop__get_order", "Load `shop__get_order`, please: get the order of shop 7 and shop 8."] {
        let arguments = serde_json::json!({"query": query, "limit": 1}).to_string();
        let found = run.exec(ToolCall::text(query, SEARCH, &arguments)).await;
        assert!(found.to_model().contains(r#""name":"shop__get_order""#), "{}", found.to_model());
    }
    // A search by name finds only tools that the run may see, and never the search tool itself.
    let run = runner.run(RunOptions::new().tools([SEARCH, "shop1__get_order"]));
    for name in ["shop__get_order", "tools__search"] {
        let arguments = serde_json::json!({"query": name, "limit": 1}).to_string();
        let found = run.exec(ToolCall::text(name, SEARCH, &arguments)).await;
        assert!(!found.to_model().contains(&format!(r#""name":"{name}""#)), "{}", found.to_model());
    }
}

/// OpenAI and Gemini accept 128 tools, and one of them may be the tool of a typed answer. A run with so many tools
/// continues with them.
#[tokio::test]
async fn no_more_tools_are_loaded_than_providers_take() {
    let names: Vec<_> = (0..200).map(|at| format!("n{at}__tool")).collect();
    let tools = names.iter().map(|name| tool(name, &format!("Number {}.", &name[1..name.len() - 6])));
    let runner = runner_of(catalog(tools), names.iter().map(String::as_str).chain([SEARCH]));
    let all: Vec<_> = (0..100).map(|at| at.to_string()).collect();
    let more: Vec<_> = (100..200).map(|at| at.to_string()).collect();
    let model = Watched::new([
        ScriptedTurn::text("Yes."),
        ScriptedTurn::call("c1", SEARCH, r#"{"query":"n199__tool","limit":1}"#).and_call("c2", "n198__tool", "{}"),
        ScriptedTurn::call("c3", "n3__tool", "{}"),
        ScriptedTurn::text("Done."),
    ]);
    let agent = Agent::new(model.clone()).pick(PickOptions::new(PickOptions::MOST).min_score(0.0));
    let mut conversation = agent.converse(runner.run(RunOptions::new()));
    conversation.send(format!("Number {}.", all.join(" "))).await;
    conversation.send(format!("Number {}.", more.join(" "))).await;
    assert!(model.offered().iter().all(|offered| offered.len() <= 127));
    assert_eq!(model.offered().last().map(Vec::len), Some(127));
    let results = results(&conversation);
    assert!(results[..2].iter().all(|read| read.contains("no room for more tools")), "{results:?}");
    assert_eq!(outcomes(&conversation).last(), Some(&Outcome::Ok));
    model.check_prefixes();
}

#[test]
fn the_name_of_the_search_is_its_own() {
    let own = ToolCatalog::builder().dynamic(tool(SEARCH, "Finds tools of my own."));
    assert!(own.build().is_err_and(|error| error.to_string().contains("reserved")));
    let odd = ToolCatalog::builder().dynamic(tool("Tools__Search", "Finds tools of my own."));
    assert!(odd.build().is_err());
    let catalog =
        ToolCatalog::builder().dynamic(tool_runtime::registration::DynamicTool::search_tools()).build().unwrap();
    assert_eq!(catalog.get(SEARCH).map(|spec| spec.effect), Some(ToolEffect::ReadOnly));
    assert!(ToolRunner::builder(catalog, ToolPolicy::allow([SEARCH])).build().is_ok());
}
