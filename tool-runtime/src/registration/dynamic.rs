//! Tools that are made at run time: a JSON Schema, an allowlist and a handler.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::call::{ToolContext, Violation};
use crate::capability::Requirement;
use crate::component::Bindings;
use crate::error::ToolError;
use crate::json::{DeError, Tree};
use crate::redact::{ProjectError, Projector};
use crate::registration::{Behaviour, Instance, RunFailure, Running};
use crate::schema::validator::{Compiled, JsonSchemaValidator, Validator};
use crate::tool::{Execution, NoSchemaMode, Schema, ToolEffect};

/// What a dynamic tool does. Its arguments passed the tool's schema; its value is checked against the output schema
/// before anything of it is shown.
#[async_trait]
pub trait DynamicHandler: Send + Sync {
    /// Runs the tool.
    async fn call(&self, arguments: &Value, context: &ToolContext) -> Result<Value, ToolError>;
}

/// A tool without a type of its own.
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
/// # Ok::<(), tool_runtime::catalog::CatalogError>(())
/// ```
#[must_use]
pub struct DynamicTool(pub(crate) DynamicParts);

pub(crate) struct DynamicParts {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
    pub(crate) effect: ToolEffect,
    pub(crate) redact: Option<Vec<String>>,
    pub(crate) model: Vec<String>,
    pub(crate) prepare: Vec<String>,
    pub(crate) answer: Option<Value>,
    pub(crate) tags: Vec<Arc<str>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_bytes: Option<usize>,
    pub(crate) require_any: Vec<String>,
    pub(crate) evidence: Vec<(String, String)>,
    pub(crate) sensitive: Vec<String>,
    pub(crate) no_schema: Option<NoSchemaMode>,
    pub(crate) handler: Arc<dyn DynamicHandler>,
}

impl DynamicTool {
    /// A tool with a schema of draft-07 or 2020-12. Without [`redact`](Self::redact) every call of it is refused.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        effect: ToolEffect,
        handler: Arc<dyn DynamicHandler>,
    ) -> Self {
        Self(DynamicParts {
            name: name.into(),
            namespace: None,
            title: None,
            description: description.into(),
            input: input_schema,
            output: None,
            effect,
            redact: None,
            model: Vec::new(),
            prepare: Vec::new(),
            answer: None,
            tags: Vec::new(),
            timeout: None,
            max_result_bytes: None,
            require_any: Vec::new(),
            evidence: Vec::new(),
            sensitive: Vec::new(),
            no_schema: None,
            handler,
        })
    }

    /// A tool that takes any object. Its calls are marked unvalidated and go on as `mode` says.
    pub fn without_schema(
        name: impl Into<String>,
        description: impl Into<String>,
        mode: NoSchemaMode,
        effect: ToolEffect,
        handler: Arc<dyn DynamicHandler>,
    ) -> Self {
        let mut tool = Self::new(name, description, json!({"type": "object"}), effect, handler);
        tool.0.no_schema = Some(mode);
        tool
    }

    /// The allowlist: leaves of the value that may leave the runner.
    pub fn redact<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.0.redact = Some(paths.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves that only the model sees besides.
    pub fn model<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.0.model = paths.into_iter().map(Into::into).collect();
        self
    }

    /// JSON Schema of the value: it is checked whole before anything of it is shown.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.0.output = Some(schema);
        self
    }

    /// Puts the name into a namespace: `tool` becomes `namespace__tool`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.0.namespace = Some(namespace.into());
        self
    }

    /// A short name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.title = Some(title.into());
        self
    }

    /// Words that policies may match.
    pub fn tags<S: Into<Arc<str>>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.0.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// How long a call may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout = Some(timeout);
        self
    }

    /// How long a projected result may be, in bytes.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.0.max_result_bytes = Some(bytes);
        self
    }

    /// The handler only prepares; a client executes and answers with a value of this schema. `prepare` is the
    /// allowlist of the payload, [`redact`](Self::redact) that of the answer.
    pub fn client<S: Into<String>>(mut self, answer_schema: Value, prepare: impl IntoIterator<Item = S>) -> Self {
        self.0.answer = Some(answer_schema);
        self.0.prepare = prepare.into_iter().map(Into::into).collect();
        self
    }

    /// At least one of these arguments has to be given.
    pub fn require_any<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.0.require_any = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// The argument has to have been seen in the run; `tool` lists such values.
    pub fn evidence(mut self, argument: impl Into<String>, tool: impl Into<String>) -> Self {
        self.0.evidence.push((argument.into(), tool.into()));
        self
    }

    /// The argument is masked in events, records, approvals and logs.
    pub fn sensitive(mut self, argument: impl Into<String>) -> Self {
        self.0.sensitive.push(argument.into());
        self
    }

    pub(crate) fn execution(&self) -> Execution {
        if self.0.answer.is_some() { Execution::Client } else { Execution::Server }
    }
}

impl fmt::Debug for DynamicTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicTool").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// The behaviour of a dynamic tool: handler and output schema.
pub(crate) struct Handled {
    pub(crate) handler: Arc<dyn DynamicHandler>,
    /// The schema of what the handler returns, when there is one.
    pub(crate) output: Option<Schema>,
    pub(crate) compiled: Arc<OnceLock<Option<Arc<dyn Compiled>>>>,
}

impl Behaviour for Handled {
    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
        Ok(Box::new(HandledCall {
            handler: Arc::clone(&self.handler),
            arguments: arguments.to_value(),
            output: self.output.clone(),
            compiled: Arc::clone(&self.compiled),
        }))
    }
}

struct HandledCall {
    handler: Arc<dyn DynamicHandler>,
    arguments: Value,
    output: Option<Schema>,
    compiled: Arc<OnceLock<Option<Arc<dyn Compiled>>>>,
}

impl HandledCall {
    /// Checks the whole value, what redaction would drop included: a violation says that the handler is not what
    /// its definition says.
    fn check(&self, value: &Value) -> Result<(), ProjectError> {
        let Some(schema) = &self.output else { return Ok(()) };
        let compiled = self.compiled.get_or_init(|| JsonSchemaValidator.compile(schema).ok());
        match compiled {
            Some(compiled) => compiled.check(&Tree::from_value(value)).map_err(ProjectError::OutputInvalid),
            None => Err(ProjectError::OutputInvalid(Vec::new())),
        }
    }
}

impl Instance for HandledCall {
    fn validate(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn run(self: Box<Self>, bindings: &Bindings<'_>, projector: Arc<Projector>, max_bytes: usize) -> Option<Running> {
        let context = Arc::clone(bindings.context);
        Some(Box::pin(async move {
            let value = self.handler.call(&self.arguments, &context).await.map_err(RunFailure::Tool)?;
            self.check(&value).map_err(RunFailure::Output)?;
            projector.project(&value, max_bytes).map_err(RunFailure::Output)
        }))
    }
}
