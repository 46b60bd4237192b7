//! One conversation of six turns over a server that replays a model: parallel calls, a failing tool, a denied tool, a
//! client tool, a malformed call. The tests run it, and the official SDKs check the requests that it sends.

use tool_runtime::Event;
use tool_runtime::agent::http::HttpModel;
use tool_runtime::agent::{Agent, ClientAnswer, Conversation, Ended};
use tool_runtime::wire::Format;
use tool_runtime::{Call, RunOptions, ToolCatalog, ToolComponent, ToolError, ToolPolicy, ToolRunner, tool};

use crate::provider::Turn;
use crate::rig::Heard;
use crate::server::{Asked, Reply, Server};

/// Doubles a number.
#[tool(name = "six__double", effect = read_only, redact = ["$"])]
fn double(
    /// What to double.
    #[schemars(range(min = 0, max = 1000))]
    n: i64,
    /// What to call it.
    label: Option<String>,
) -> Result<i64, ToolError> {
    drop(label);
    Ok(n * 2)
}

/// Always fails.
#[tool(name = "six__fail", effect = read_only, redact = ["$"])]
fn fail() -> Result<bool, ToolError> {
    Err(ToolError::safe("It always fails."))
}

/// Is not allowed.
#[tool(name = "six__denied", effect = read_only, redact = ["$"])]
fn denied() -> Result<bool, ToolError> {
    Ok(true)
}

/// Where the user's cursor is.
#[tool(name = "six__cursor", effect = read_only, execution = client, client_result = u32, prepare = ["$"],
    redact = ["$"])]
struct Cursor {
    /// The file.
    file: String,
}

impl ToolComponent for Cursor {
    type Capabilities = ();
    type Output = String;

    async fn run(self, (): (), _: &Call<Self>) -> Result<String, ToolError> {
        Ok(self.file)
    }
}

/// What came of it.
#[derive(Debug)]
pub struct SixTurns {
    /// The conversation at its end.
    pub conversation: Conversation,
    /// How the last turn ended.
    pub ended: Ended,
    /// The requests that the endpoint got.
    pub asked: Vec<Asked>,
    /// What the run told, hand-over and all.
    pub events: Vec<Event>,
}

/// The turns of the model.
#[must_use]
pub fn turns() -> [Turn; 6] {
    [
        Turn::calls([("a1", "six__double", r#"{"n":1,"label":"one"}"#), ("a2", "six__double", r#"{"n":2}"#)]),
        Turn { text: "Let me see.".to_owned(), ..Turn::calls([("b1", "six__fail", "{}")]) },
        Turn::calls([("c1", "six__denied", "{}"), ("c2", "six__unheard_of", r#"{"x":[1,2]}"#)]),
        Turn::calls([("d1", "six__double", r#"{"n": 1"#), ("d2", "six__double", r#"{"n":"many"}"#)]),
        Turn::calls([("e1", "six__cursor", r#"{"file":"a.rs"}"#), ("e2", "six__double", r#"{"n":500}"#)]),
        Turn::text("That is all: 2, 4, 1000 and line 7."),
    ]
}

/// Holds the conversation in one format.
///
/// # Errors
/// Nothing listens, or a piece of the setup is wrong.
pub async fn hold(format: Format, strict: bool) -> Result<SixTurns, Box<dyn std::error::Error>> {
    let replies = turns().map(|turn| Reply::stream(&turn.stream(format)).in_pieces(97, std::time::Duration::ZERO));
    let server = Server::start(replies)?;
    let catalog = ToolCatalog::builder().tool::<double>().tool::<fail>().tool::<denied>().tool::<Cursor>().build()?;
    let policy = "allowed_tools = [\"six__double\", \"six__fail\", \"six__cursor\"]\nparallel = 4";
    let policy = ToolPolicy::from_toml(policy)?;
    let runner = ToolRunner::builder(catalog, policy).build()?;
    let model = HttpModel::builder(format, server.url(), "m").key("a key").strict(strict).retries(0).build()?;
    let agent = Agent::new(model).instructions("Be brief.");
    let heard = Heard::default();
    let mut conversation = agent.converse(runner.run(RunOptions::new().events(heard.clone())));
    let waiting = conversation.send("Double 1, 2 and 500, and tell me where my cursor is.").await;
    if !matches!(waiting, Ended::Waiting { .. }) {
        return Err(format!("the client was not asked: {waiting:?}").into());
    }
    let id = conversation.waiting().map(|call| call.id.clone()).next().ok_or("nothing waits")?;
    let ended = conversation.answer([ClientAnswer::value(id, "7")]).await?;
    let events = heard.take();
    Ok(SixTurns { conversation, ended, asked: server.asked(), events })
}
