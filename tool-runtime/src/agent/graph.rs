//! [`Graph`]: an agent that is a tool of another agent.

mod task;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::Agent;
use crate::agent::graph::task::{Arguments, Report, Task};
use crate::capability::Requirement;
use crate::json::{self, DeError, Tree};
use crate::registration::{Behaviour, DynamicTool, GraphDeclaration, Instance};
use crate::tool::Hash;

/// An agent that is a tool of another agent: a model passes a task, and gets a summary with findings.
///
/// The tool is named `graph__NAME` and takes a `task`. The policy denies it unless `allowed_graphs` names the graph.
/// Its effect is the greatest effect among the graph's tools, in the order `read_only`, `state_change`,
/// `external_side_effect`.
///
/// The graph works in a separate run, through the same gate, and never has more rights than the run that calls it. It
/// has the principal, the tenant, the roles, the attributes and the connections of the calling run. It has only tools
/// that both the graph and the calling run have, and no other graph. It begins with the labels of the calling run
/// (lasting marks, such as `untrusted`) and with its evidence (the ids in the results and in the user's messages). Its
/// tokens and calls count against the budgets of both runs. The calling run does not see the graph's history, but
/// receives the graph's labels and evidence at the end, even if the graph fails. If one of the graph's calls needs an
/// approval, the call of the graph waits. A decision on the graph's call decides the inner call, and the graph
/// continues.
///
/// ```
/// use tool_runtime::agent::{Agent, Graph, TurnOutcome};
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// /// Looks up a word.
/// #[tool(name = "words__look_up", effect = read_only, redact = ["$"])]
/// fn look_up(
///     /// The word.
///     word: String,
/// ) -> Result<usize, ToolError> {
///     Ok(word.len())
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let inner = Agent::new(ScriptedModel::new([
///     ScriptedTurn::call("c1", "words__look_up", r#"{"word":"gate"}"#),
///     ScriptedTurn::text(r#"{"summary":"It has four letters.","findings":[]}"#),
/// ]));
/// let researcher = Graph::new("researcher", "1", inner)
///     .description("Researches words. Give it a whole task.")
///     .tools(["words__look_up"]);
/// let catalog = ToolCatalog::builder().tool::<look_up>().dynamic(researcher).build()?;
/// let policy = ToolPolicy::from_toml(
///     r#"
///     allowed_tools = ["words__look_up"]
///     allowed_graphs = ["researcher"]
///     "#,
/// )?;
/// let runner = ToolRunner::builder(catalog, policy).build()?;
///
/// let model = ScriptedModel::new([
///     ScriptedTurn::call("c1", "graph__researcher", r#"{"task":"How long is the word gate?"}"#),
///     ScriptedTurn::text("Four letters."),
/// ]);
/// let mut conversation = Agent::new(model).converse(runner.run(RunOptions::new()));
/// assert!(matches!(conversation.send("How long is it?").await, TurnOutcome::Answered { .. }));
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Graph {
    name: String,
    version: String,
    agent: Agent,
    description: String,
    summary: Vec<Arc<str>>,
    tools: Vec<String>,
    timeout: Option<Duration>,
    max_output: Option<usize>,
    idempotent: bool,
}

impl Graph {
    /// Creates a graph. The version is part of the hash of the graph's definition and of the records of its calls.
    /// Change it whenever the agent's instructions or model change.
    pub fn new(name: impl Into<String>, version: impl Into<String>, agent: Agent) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            agent,
            description: String::new(),
            summary: Vec::new(),
            tools: Vec::new(),
            timeout: None,
            max_output: None,
            idempotent: false,
        }
    }

    /// Sets the description for the calling model. A catalog refuses a graph without a description.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Sets the sentence for the person who decides on a call of the graph itself; `{task}` in it is replaced by the
    /// task. For a call that the graph makes, the person reads the summary of the called tool.
    pub fn summary(mut self, sentence: impl Into<Arc<str>>) -> Self {
        self.summary = vec![sentence.into()];
        self
    }

    /// Sets the graph's tools, by exact name. A catalog refuses a graph that has no tools, or one whose tools do not
    /// exist, are graphs, or are executed by a client.
    pub fn tools<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.tools = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time limit of a task; the policy can set less. By default only the policy limits it.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum length of the report, in bytes; by default the policy's `max_result_bytes`, which can also set
    /// less. Findings that do not fit are left out, the last findings first, and a summary that does not fit is cut.
    pub const fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = Some(bytes);
        self
    }

    /// States that a task can be repeated after a crash. The calls of the repeated task have the same idempotency keys,
    /// so calls that ended are not made again.
    pub const fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("name", &self.name).field("version", &self.version).finish_non_exhaustive()
    }
}

impl From<Graph> for DynamicTool {
    fn from(graph: Graph) -> Self {
        let input = serde_json::json!({
            "type": "object",
            "properties": { "task": {
                "type": "string", "minLength": 1,
                "description": "The complete task with everything needed to do it. The agent sees nothing else of the conversation.",
            } },
            "required": ["task"],
            "additionalProperties": false,
        });
        let Graph { name, version, agent, description, summary, tools, timeout, max_output, idempotent } = graph;
        let declared = GraphDeclaration {
            version: version.clone(),
            tools: tools.clone(),
            definitions: Vec::new(),
            only_reads: false,
            asks_each: false,
            instructions: Some(agent.version(Hash([0; 32]))),
        };
        let behaviour = Arc::new(Works(Arc::new(Shared { name: name.clone(), version, agent, tools })));
        let mut tool = Self::graph(&name, description, input, declared, behaviour)
            .summary(summary)
            .redact(Report::PATHS)
            .output_schema(Report::schema());
        if let Some(timeout) = timeout {
            tool = tool.timeout(timeout);
        }
        if let Some(bytes) = max_output {
            tool = tool.max_result_bytes(bytes);
        }
        if idempotent { tool.idempotent() } else { tool }
    }
}

/// The parts that all calls of a graph share.
struct Shared {
    name: String,
    version: String,
    agent: Agent,
    tools: Vec<String>,
}

struct Works(Arc<Shared>);

impl Behaviour for Works {
    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
        let Arguments { task } = json::from_tree(arguments)?;
        Ok(Box::new(Task { graph: Arc::clone(&self.0), task }))
    }
}
