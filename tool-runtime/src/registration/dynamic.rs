//! Tools that are made at run time: a JSON Schema, an allowlist and a handler.

mod describe;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::BuildError;
#[cfg(feature = "mcp-client")]
use crate::registration::OnAccount;
use crate::registration::{Behaviour, DynamicHandler, GraphDeclaration, Published};
use crate::tool::{self, Hash, NoSchemaMode, Once, OnceScope, ToolEffect, ToolSpec};

/// A tool that is built at run time from a JSON Schema, an allowlist and a [`DynamicHandler`].
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use serde_json::{Value, json};
/// use tool_runtime::registration::{DynamicHandler, DynamicTool};
/// use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError};
///
/// struct Echo;
///
/// #[async_trait]
/// impl DynamicHandler for Echo {
///     async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
///         Ok(json!({"text": arguments["text"], "host": "db-7"}))
///     }
/// }
///
/// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
/// let echo = DynamicTool::new("lab__echo", "Says it again.", schema, ToolEffect::ReadOnly, Arc::new(Echo))
///     .redact(["text"]);
/// let catalog = ToolCatalog::builder().dynamic(echo).build()?;
/// assert!(catalog.get("lab__echo").is_some());
/// # Ok::<(), tool_runtime::error::BuildError>(())
/// ```
#[must_use]
pub struct DynamicTool {
    name: String,
    namespace: Option<String>,
    /// Whether [`discovered`](Self::discovered) created the tool, so that its name may begin with `mcp__`.
    discovered: bool,
    /// Whether the tool keeps a name without a namespace, as in a file of definitions.
    foreign: bool,
    title: Option<String>,
    description: String,
    summary: Vec<Arc<str>>,
    input: Value,
    output: Option<Value>,
    answer: Option<Value>,
    effect: ToolEffect,
    redact: Option<Vec<String>>,
    model: Vec<String>,
    prepare: Vec<String>,
    tags: Vec<Arc<str>>,
    also: Vec<Arc<str>>,
    timeout: Option<Duration>,
    max_result_bytes: Option<usize>,
    require_any: Vec<String>,
    evidence: BTreeMap<String, String>,
    sensitive: Vec<String>,
    idempotent: bool,
    once: Option<Once>,
    /// How long an effect key keeps the result, in seconds. `None` if it keeps it forever.
    keep: Option<u64>,
    no_schema: Option<NoSchemaMode>,
    /// The hash of the definition as it was published, and the definition that the server publishes now.
    published: Option<(Hash, Arc<dyn Published>)>,
    #[cfg(feature = "mcp-client")]
    account: Option<OnAccount>,
    runs: Runs,
}

/// The implementation of a dynamic tool.
enum Runs {
    Handler(Arc<dyn DynamicHandler>),
    Graph(GraphDeclaration, Arc<dyn Behaviour>),
    BuiltIn(Arc<dyn Behaviour>),
}

impl DynamicTool {
    /// Creates a tool with a schema of draft-07 or 2020-12. Every call is refused without an allowlist, which is set
    /// here with [`redact`](Self::redact), or in the policy with `tools.NAME.redact`. The name needs a namespace: write
    /// `core__clock`, or `clock` with [`namespace`](Self::namespace). A catalog refuses a name without one.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        effect: ToolEffect,
        handler: Arc<dyn DynamicHandler>,
    ) -> Self {
        Self::running(name.into(), description.into(), input_schema, effect, Runs::Handler(handler))
    }

    /// Creates the tool of a graph (an agent or a script). The catalog sets its effect.
    pub(crate) fn graph(
        name: &str,
        description: String,
        input: Value,
        declared: GraphDeclaration,
        behaviour: Arc<dyn Behaviour>,
    ) -> Self {
        let effect = ToolEffect::ExternalSideEffect;
        Self::running(tool::graph(name), description, input, effect, Runs::Graph(declared, behaviour))
    }

    /// Creates a built-in tool of this library.
    pub(crate) fn built_in(
        name: &str,
        description: &str,
        input: Value,
        effect: ToolEffect,
        behaviour: Arc<dyn Behaviour>,
    ) -> Self {
        Self::running(name.to_owned(), description.to_owned(), input, effect, Runs::BuiltIn(behaviour))
    }

    fn running(name: String, description: String, input: Value, effect: ToolEffect, runs: Runs) -> Self {
        Self {
            name,
            namespace: None,
            discovered: false,
            foreign: false,
            title: None,
            description,
            summary: Vec::new(),
            input,
            output: None,
            answer: None,
            effect,
            redact: None,
            model: Vec::new(),
            prepare: Vec::new(),
            tags: Vec::new(),
            also: Vec::new(),
            timeout: None,
            max_result_bytes: None,
            require_any: Vec::new(),
            evidence: BTreeMap::new(),
            sensitive: Vec::new(),
            idempotent: false,
            once: None,
            keep: None,
            no_schema: None,
            published: None,
            #[cfg(feature = "mcp-client")]
            account: None,
            runs,
        }
    }

    /// Creates a tool that accepts any object. Its calls are marked unvalidated. They run only if the tool is
    /// `read_only`, unless [`approve_each`](Self::approve_each) is called.
    pub fn without_schema(
        name: impl Into<String>,
        description: impl Into<String>,
        effect: ToolEffect,
        handler: Arc<dyn DynamicHandler>,
    ) -> Self {
        let no_schema = Some(NoSchemaMode::RejectEffects);
        Self { no_schema, ..Self::new(name, description, json!({"type": "object"}), effect, handler) }
    }

    /// Requires an approval for each call of a tool [without a schema](Self::without_schema), even if the tool is
    /// `read_only`, and lets calls with effects run after it. Has no effect on any other tool.
    pub fn approve_each(mut self) -> Self {
        self.no_schema = self.no_schema.and(Some(NoSchemaMode::ApproveEach));
        self
    }

    /// Creates a tool that a server published under `name`. It is untrusted, so the server's claims about it do not
    /// count.
    ///
    /// Its name is `mcp__<server>__<name>`, and its effect `external_side_effect` unless the policy sets another one.
    /// The tool is denied until the policy's `tools.NAME.pin` is the hash of exactly this definition
    /// ([`ToolSpec::pin`](crate::ToolSpec)). Results show only the leaves in the policy's `tools.NAME.redact`. The hash
    /// covers the definition in MCP's form: `name`, `title`, `description`, `inputSchema`, `outputSchema`.
    pub fn discovered(
        server: &str,
        name: &str,
        description: impl Into<String>,
        input_schema: Value,
        handler: Arc<dyn DynamicHandler>,
    ) -> Self {
        let name = format!("mcp__{server}__{name}");
        Self { discovered: true, ..Self::new(name, description, input_schema, ToolEffect::ExternalSideEffect, handler) }
    }

    /// Keeps a name without a namespace. Use it for definitions of other programs that are only ranked, compared or
    /// used to check arguments, and whose tools never run here.
    pub fn foreign(mut self) -> Self {
        self.foreign = true;
        self
    }

    /// Returns the definition that the tool has in a catalog.
    ///
    /// # Errors
    /// All problems of the definition together.
    pub fn definition(self) -> Result<ToolSpec, BuildError> {
        self.describe().spec()
    }

    /// Sets the hash of the published definition, and its server.
    #[cfg(feature = "mcp-client")]
    pub(crate) fn published(mut self, pin: Hash, server: Arc<dyn Published>) -> Self {
        self.published = Some((pin, server));
        self
    }

    /// Replaces the handler with one that acts with the token of an account.
    #[cfg(feature = "mcp-client")]
    pub(crate) fn on_account(mut self, account: OnAccount) -> Self {
        self.account = Some(account);
        self
    }

    /// Sets the allowlist: the leaves of the handler's value that may leave the runner. A policy can narrow it.
    pub fn redact<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.redact = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// Sets additional leaves that only the model sees.
    pub fn model<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.model = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the JSON Schema of the handler's value. The runner checks the whole value before it shows any part.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Puts the name into a namespace: `tool` becomes `namespace__tool`. A catalog refuses this for a discovered tool,
    /// whose server is its namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets a short name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the sentences for the person who decides on a call, with the names of arguments in braces:
    /// `Deletes the task {title}`. The person reads the first sentence whose arguments are all present, or else the
    /// last one. A catalog refuses names that the schema does not have, and names of sensitive arguments.
    pub fn summary<S: Into<Arc<str>>>(mut self, sentences: impl IntoIterator<Item = S>) -> Self {
        self.summary = sentences.into_iter().map(Into::into).collect();
        self
    }

    /// Sets words that a policy can match.
    pub fn tags<S: Into<Arc<str>>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets additional search words, such as `overdue`. Models do not read them.
    pub fn also<S: Into<Arc<str>>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.also = words.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time limit of a call.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum size of a result after redaction, in bytes.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }

    /// Makes this a client tool: the handler only prepares a payload, and a client executes the call and sends back a
    /// value of `answer_schema`. `prepare` is the allowlist of the payload, [`redact`](Self::redact) the allowlist of
    /// the client's value. A catalog refuses this for a discovered tool, because the server executes it.
    pub fn client<S: Into<String>>(mut self, answer_schema: Value, prepare: impl IntoIterator<Item = S>) -> Self {
        self.answer = Some(answer_schema);
        self.prepare = prepare.into_iter().map(Into::into).collect();
        self
    }

    /// Requires at least one of these arguments.
    pub fn require_any<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.require_any = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Requires that the value of the argument has appeared before in a result of the run or in a message of the user.
    /// `tool` is the tool that lists such values; hints to the model name it if the model can call it.
    pub fn evidence(mut self, argument: impl Into<String>, tool: impl Into<String>) -> Self {
        self.evidence.insert(argument.into(), tool.into());
        self
    }

    /// Masks the argument in events, records, approvals and logs.
    pub fn sensitive(mut self, argument: impl Into<String>) -> Self {
        self.sensitive.push(argument.into());
        self
    }

    /// Declares that running the tool again with the same arguments has no further effect.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Sets the effect key, with the names of arguments in braces: `refund:{payment_id}`. In a tenant, calls with an
    /// equal key take effect once; a later call gets the result of the first. A catalog refuses the effect key of a
    /// `read_only` tool or of a client tool. It also refuses a key with names that the schema does not have, or with
    /// names of sensitive or optional arguments.
    pub fn once(self, key: impl Into<Arc<str>>) -> Self {
        self.once_in(OnceScope::Tenant, key.into())
    }

    /// Like [`once`](Self::once), but once for each principal.
    pub fn once_per_principal(self, key: impl Into<Arc<str>>) -> Self {
        self.once_in(OnceScope::Principal, key.into())
    }

    /// Like [`once`](Self::once), but once for each run, including the runs of its graphs and scripts.
    pub fn once_per_run(self, key: impl Into<Arc<str>>) -> Self {
        self.once_in(OnceScope::Run, key.into())
    }

    fn once_in(mut self, scope: OnceScope, key: Arc<str>) -> Self {
        self.once = Some(Once { key, scope, keep: None });
        self
    }

    /// Sets how long an effect key keeps the result, in whole seconds. After that, the effect can happen again. By
    /// default, the key keeps the result forever. Without an effect key, the time has no meaning.
    pub fn once_for(mut self, time: Duration) -> Self {
        self.keep = Some(time.as_secs().max(1));
        self
    }
}

impl fmt::Debug for DynamicTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicTool").field("name", &self.name).finish_non_exhaustive()
    }
}
