//! [`CodeMode`]: a tool that runs a script that a model writes. The calls of the script go through the gate.

mod engine;
mod interpreter;
mod paused;
mod script;
mod script_error;
mod size;
mod value;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::agent::code::script::{Arguments, Script, Settings};
use crate::capability::Requirement;
use crate::json::{self, DeError, Tree};
use crate::registration::{Behaviour, DynamicTool, GraphDeclaration, Instance};

/// The maximum length of the source, in characters. A policy limits arguments to 8,192 bytes of JSON by default, which
/// leaves more than 1,000 bytes for escapes and for characters of several bytes.
const SOURCE: usize = 7_000;

/// The description of the language for the model, after the application's description.
const LANGUAGE: &str = "The script is in Rhai. Tools are functions that take one object map, such as \
    `let notes = notes__list(#{ page: 1 });`; a tool of any name is called by `call_tool(\"name\", #{ .. })`. A call returns \
    what the tool returns, and throws `#{ errorCode, message, .. }` if it fails. The last expression is the result, as \
    JSON in `value`; `print` adds text to `printed`. There are no functions of your own, closures, modules, clock, \
    randomness or files.";

/// A tool that runs a script, so that a model can request many calls at once and reads only the result.
///
/// The tool is named `graph__NAME` and takes a `script`. It is a graph without a model, so the rules of a
/// [`Graph`](crate::agent::Graph) apply. The policy denies it unless `allowed_graphs` names it. Its calls go through
/// the gate in a separate run, with one record each, and never have more rights or a larger budget than the calling
/// run. The policy's `budgets.graphs.NAME` and `callers."graph:NAME"` can restrict them further.
///
/// A script can reach nothing except through tool calls. The script's operations, the depth of its expressions, the
/// sizes of its values and the number of its calls are limited, and the time limit of the tool applies to the whole
/// script. The script waits at each call that needs an approval; every call with effects needs one. After the decision
/// the script runs again from its beginning, and its earlier calls return their recorded results.
///
/// ```
/// use tool_runtime::agent::CodeMode;
/// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
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
/// let code = CodeMode::new("code", "1").tools(["words__look_up"]);
/// let catalog = ToolCatalog::builder().tool::<look_up>().dynamic(code).build()?;
/// let policy = ToolPolicy::from_toml(
///     r#"
///     allowed_tools = ["words__look_up"]
///     allowed_graphs = ["code"]
///     "#,
/// )?;
/// let run = ToolRunner::builder(catalog, policy).build()?.run(RunOptions::new());
///
/// let script = r#"{"script":"let n = 0; for word in [\"a\", \"gate\"] { n += words__look_up(#{ word: word }); } n"}"#;
/// let result = run.exec(ToolCall::text("c1", "graph__code", script)).await;
/// assert_eq!(result.to_model(), r#"{"value":"5","printed":"","calls":2}"#);
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CodeMode {
    name: String,
    version: String,
    description: String,
    tools: Vec<String>,
    effects: bool,
    calls: usize,
    operations: u64,
    timeout: Duration,
    max_output: Option<usize>,
}

impl CodeMode {
    /// Creates the tool. The version is part of the hash of the tool's definition and of the records of its calls.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            description: "Runs a script that calls tools, and returns its result.".into(),
            tools: Vec::new(),
            effects: false,
            calls: 100,
            operations: 1_000_000,
            timeout: Duration::from_secs(60),
            max_output: None,
        }
    }

    /// Sets the description for the calling model. A description of the language follows it.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Sets the tools that a script may call, by exact name. A catalog refuses an empty list, and tools that do not
    /// exist, are graphs, or are executed by a client. It also refuses tools with effects, unless
    /// [`effects`](Self::effects) permits them.
    pub fn tools<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.tools = names.into_iter().map(Into::into).collect();
        self
    }

    /// Permits tools with effects. Each call of such a tool waits for an approval, even if the policy allows it. If the
    /// runner has no approvals, the script does not see the tool.
    pub const fn effects(mut self) -> Self {
        self.effects = true;
        self
    }

    /// Sets the maximum number of calls of a script, 100 by default; the policy can set less. A script that makes one
    /// more call ends with an error.
    pub const fn max_calls(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the maximum number of operations of the interpreter, 1,000,000 by default.
    pub const fn max_operations(mut self, operations: u64) -> Self {
        self.operations = operations;
        self
    }

    /// Sets the time limit of a script with its calls, one minute by default; the policy can set less.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum length of the output, in bytes; the policy can set less. Printed text is cut to fit; a result
    /// that does not fit is refused.
    pub const fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = Some(bytes);
        self
    }
}

impl From<CodeMode> for DynamicTool {
    fn from(code: CodeMode) -> Self {
        let CodeMode { name, version, description, tools, effects, calls, operations, timeout, max_output } = code;
        let input = json!({
            "type": "object",
            "properties": { "script": {
                "type": "string", "minLength": 1, "maxLength": SOURCE, "description": "The source of the script.",
            } },
            "required": ["script"],
            "additionalProperties": false,
        });
        let declared = GraphDeclaration {
            version: format!("{version} rhai calls={calls} operations={operations}"),
            tools: tools.clone(),
            definitions: Vec::new(),
            only_reads: !effects,
            asks_each: effects,
            instructions: None,
        };
        let settings = Settings { name: name.clone(), version, tools, calls, operations };
        let behaviour = Arc::new(Runs(Arc::new(settings)));
        let mut tool = Self::graph(&name, format!("{description} {LANGUAGE}"), input, declared, behaviour)
            .summary(["Runs a script"])
            .redact(["value", "printed", "calls"])
            .timeout(timeout)
            .output_schema(json!({
                "type": "object",
                "properties": { "value": {"type": "string"}, "printed": {"type": "string"}, "calls": {"type": "integer"} },
                "required": ["value", "printed", "calls"],
            }));
        if let Some(bytes) = max_output {
            tool = tool.max_result_bytes(bytes);
        }
        tool
    }
}

struct Runs(Arc<Settings>);

impl Behaviour for Runs {
    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
        let Arguments { script } = json::from_tree(arguments)?;
        Ok(Box::new(Script { settings: Arc::clone(&self.0), source: script }))
    }
}
