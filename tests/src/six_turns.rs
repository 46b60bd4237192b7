//! One conversation of six turns over a server that replays a model: parallel calls, a failing tool, a denied tool, a
//! client tool, a malformed call. The tests run it, and the official SDKs check the requests that it sends.

use std::collections::BTreeMap;

use tool_runtime::Event;
use tool_runtime::agent::http::HttpModel;
use tool_runtime::agent::{Agent, Conversation, TurnOutcome};
use tool_runtime::call::ClientAnswer;
use tool_runtime::wire::{Format, ReasoningEffort, RequestSettings};
use tool_runtime::{RunOptions, ToolPolicy, ToolRunner};

use crate::provider::Turn;
use crate::server::{Asked, Reply, Server};
use crate::world::{self, EventLog};

/// The result of the conversation.
#[derive(Debug)]
pub struct SixTurns {
    /// The conversation at its end.
    pub conversation: Conversation,
    /// The end of the last turn.
    pub ended: TurnOutcome,
    /// The requests that the endpoint got.
    pub asked: Vec<Asked>,
    /// The events of the run, those of the hand-over included.
    pub events: Vec<Event>,
}

/// The turns of the model.
#[must_use]
pub fn turns() -> [Turn; 6] {
    [
        Turn::calls([("a1", "rig__double", r#"{"n":1,"label":"one"}"#), ("a2", "rig__double", r#"{"n":2}"#)]),
        Turn { text: "Let me see.".to_owned(), ..Turn::calls([("b1", "rig__fail", "{}")]) },
        Turn::calls([("c1", "rig__denied", "{}"), ("c2", "rig__unheard_of", r#"{"x":[1,2]}"#)]),
        Turn::calls([("d1", "rig__double", r#"{"n": 1"#), ("d2", "rig__double", r#"{"n":"many"}"#)]),
        Turn::calls([("e1", "rig__cursor", r#"{"file":"a.rs"}"#), ("e2", "rig__double", r#"{"n":500}"#)]),
        Turn::text("That is all: 2, 4, 1000 and line 7."),
    ]
}

/// Runs the conversation in one format.
///
/// # Errors
/// The server cannot listen, or a part of the setup is wrong.
pub async fn hold(format: Format, strict: bool) -> Result<SixTurns, Box<dyn std::error::Error>> {
    let replies = turns().map(|turn| Reply::stream(&turn.stream(format)).in_pieces(97, std::time::Duration::ZERO));
    let server = Server::start(replies)?;
    let catalog = world::tools().build()?;
    let policy = "allowed_tools = [\"rig__double\", \"rig__fail\", \"rig__cursor\"]\nparallel = 4";
    let policy = ToolPolicy::from_toml(policy)?;
    let runner = ToolRunner::builder(catalog, policy).build()?;
    let model = HttpModel::builder(format, server.url(), "m").key("a key").strict(strict).retries(0).build()?;
    let agent = Agent::new(model).instructions("Be brief.");
    let heard = EventLog::default();
    let mut conversation = agent.converse(runner.run(RunOptions::new().events(heard.sink())));
    let waiting = conversation.send("Double 1, 2 and 500, and tell me where my cursor is.").await;
    if !matches!(waiting, TurnOutcome::Waiting { .. }) {
        return Err(format!("the client was not asked: {waiting:?}").into());
    }
    let id = conversation.waiting().map(|call| call.id.clone()).next().ok_or("nothing waits")?;
    let ended = conversation.answer([ClientAnswer::value(id, "7")]).await?;
    let events = heard.take();
    Ok(SixTurns { conversation, ended, asked: server.asked(), events })
}

/// Requests two typed answers in one format, with settings: one through the provider's schema mode, and one through a
/// tool. Returns the bodies of the requests.
///
/// # Errors
/// The server cannot listen, or an answer is missing.
pub async fn typed(format: Format) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let double = || Turn::calls([("a1", "rig__double", r#"{"n":1}"#)]);
    let list = match format {
        Format::Ollama | Format::Gemini => Turn::calls([("z1", "final_answer", r#"{"answer":[2]}"#)]),
        _ => Turn::text(r#"{"answer":[2]}"#),
    };
    let counts = Turn::calls([("z2", "final_answer", r#"{"one":2}"#)]);
    let turns = [double(), list, Turn::text("[2]"), Turn::text(r#"{"answer":[2]}"#), counts];
    let server = Server::start(turns.iter().map(|turn| Reply::stream(&turn.stream(format))))?;
    let settings =
        RequestSettings::new().max_output_tokens(900).reasoning(ReasoningEffort::Low).user("u-1").cache_key("k-1");
    let model = || HttpModel::builder(format, server.url(), "m").retries(0).build();
    let agent = Agent::new(model()?).instructions("Be brief.").settings(settings);
    let with = |policy: ToolPolicy| {
        ToolRunner::builder(world::tools().build()?, policy).build().map_err(Box::<dyn std::error::Error>::from)
    };
    let mut conversation = agent.converse(with(ToolPolicy::allow(["rig__double"]))?.run(RunOptions::new()));
    let list: Vec<u32> = conversation.ask("Double 1.").await?;
    let mut conversation = agent.converse(with(ToolPolicy::deny_all())?.run(RunOptions::new()));
    let again: Vec<u32> = conversation.ask("Double 1.").await?;
    let counts: BTreeMap<String, u32> = conversation.ask("And by name?").await?;
    if (list, again, counts.len()) != (vec![2], vec![2], 1) {
        return Err("other answers than the model gave".into());
    }
    Ok(server.asked().into_iter().map(|asked| asked.body).collect())
}
