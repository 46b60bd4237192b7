//! The behaviour of a dynamic tool: calls its [`DynamicHandler`], and checks the whole value before any part of it is
//! shown.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use serde_json::Value;

use crate::call::ToolContext;
use crate::capability::Requirement;
#[cfg(feature = "mcp-client")]
use crate::capability::connection::Connection;
#[cfg(feature = "mcp-client")]
use crate::capability::{BearerToken, InjectedFrom, Secret};
use crate::component::{Bindings, WithMedia};
use crate::error::{ErrorKind, ToolError};
use crate::json::{DeError, Tree};
use crate::redact::{ProjectError, Projector};
use crate::registration::{Behaviour, Instance, Purpose, RunFailure, Running};
use crate::schema::validator::{Compiled, JsonSchemaValidator, Validator};
use crate::tool::Schema;

/// The implementation of a dynamic tool. The runner calls it only with arguments that match the tool's schema, and
/// checks the value against the output schema before it shows any part. Implement the trait with `#[async_trait]`, as
/// in the example of [`DynamicTool`](crate::registration::DynamicTool).
#[async_trait]
pub trait DynamicHandler: Send + Sync {
    /// Runs the tool.
    ///
    /// # Errors
    /// The tool failed. Operators read the error; a model reads the parts that [`ToolError`] declares safe.
    async fn call(&self, arguments: &Value, context: &ToolContext) -> Result<Value, ToolError>;

    /// Runs a tool that returns files attached to its value. The runner calls this method, which calls
    /// [`call`](Self::call) by default.
    ///
    /// # Errors
    /// The same errors as [`call`](Self::call).
    async fn call_with_media(&self, arguments: &Value, context: &ToolContext) -> Result<WithMedia<Value>, ToolError> {
        self.call(arguments, context).await.map(WithMedia::new)
    }
}

/// The connection and the handler of a tool that acts with the token of an account.
#[cfg(feature = "mcp-client")]
#[derive(Clone)]
pub(crate) struct OnAccount {
    /// The kind of connection.
    pub(crate) kind: &'static str,
    pub(crate) handler: Arc<dyn AccountHandler>,
}

/// The behaviour of a tool that acts with the token of an account.
#[cfg(feature = "mcp-client")]
#[async_trait]
pub(crate) trait AccountHandler: Send + Sync {
    /// Like [`DynamicHandler::call_with_media`], with the token.
    async fn call_on(&self, token: &Secret<String>, arguments: &Value) -> Result<WithMedia<Value>, ToolError>;
}

#[cfg(feature = "mcp-client")]
impl OnAccount {
    /// Returns the requirement that the broker has to fulfil.
    pub(super) fn requirement(&self) -> Requirement {
        Requirement { source: InjectedFrom::Connection(self.kind), ..Requirement::of::<Connection<dyn BearerToken>>() }
    }
}

/// The behaviour of a dynamic tool: handler and output schema.
pub(super) struct Handled {
    pub(super) handler: Arc<dyn DynamicHandler>,
    /// The schema of the handler's value; `None` if there is none.
    pub(super) output: Option<Schema>,
    /// The compiled output schema, set by the first call. `None` if the schema does not compile; no value then passes.
    pub(super) compiled: Arc<OnceLock<Option<Arc<dyn Compiled>>>>,
    #[cfg(feature = "mcp-client")]
    pub(super) account: Option<OnAccount>,
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
            #[cfg(feature = "mcp-client")]
            account: self.account.clone(),
        }))
    }
}

struct HandledCall {
    handler: Arc<dyn DynamicHandler>,
    arguments: Value,
    output: Option<Schema>,
    compiled: Arc<OnceLock<Option<Arc<dyn Compiled>>>>,
    #[cfg(feature = "mcp-client")]
    account: Option<OnAccount>,
}

impl HandledCall {
    /// Checks the whole value, including members that redaction would drop: a violation means that the handler does not
    /// match its definition.
    fn check(&self, value: &Value) -> Result<(), ProjectError> {
        let Some(schema) = &self.output else { return Ok(()) };
        let compiled = self.compiled.get_or_init(|| JsonSchemaValidator.compile(schema).ok());
        // A value that is nested too deeply to be read matches no schema.
        match (compiled, Tree::try_from(value)) {
            (Some(compiled), Ok(tree)) => compiled.check(&tree).map_err(ProjectError::OutputInvalid),
            _ => Err(ProjectError::OutputInvalid(Vec::new())),
        }
    }
}

impl Instance for HandledCall {
    fn run(
        self: Box<Self>,
        purpose: Purpose,
        bindings: Bindings<'_>,
        projector: Arc<Projector>,
        max_bytes: usize,
    ) -> Option<Running> {
        #[cfg(feature = "mcp-client")]
        let account = match &self.account {
            Some(account) => Some((bindings.get::<Connection<dyn BearerToken>>()?, Arc::clone(&account.handler))),
            None => None,
        };
        let context = bindings.context;
        Some(Box::pin(async move {
            if purpose == Purpose::Reconcile {
                return Err(RunFailure::Unknown);
            }
            #[cfg(feature = "mcp-client")]
            let output = match account {
                Some((connection, handler)) => handler.call_on(connection.token(), &self.arguments).await,
                None => self.handler.call_with_media(&self.arguments, &context).await,
            };
            #[cfg(not(feature = "mcp-client"))]
            let output = self.handler.call_with_media(&self.arguments, &context).await;
            let output = output.map_err(|error| failure(error, &projector))?;
            let (value, media) = output.into_parts();
            self.check(&value).map_err(RunFailure::Output)?;
            let projected = projector.project(&value, max_bytes).map_err(RunFailure::Output)?;
            Ok(projector.with_media(projected, media))
        }))
    }
}

/// Classifies a handler's error for the runner. A model reads a server's error text only if the allowlist names
/// `$error`.
fn failure(error: ToolError, projector: &Projector) -> RunFailure {
    match error.kind() {
        ErrorKind::Reported if projector.shows_error() => {
            let text = error.detail();
            // If the server sent no text, the fixed message remains.
            RunFailure::Tool(if text.trim().is_empty() { error } else { error.with_safe(text) })
        }
        ErrorKind::Tool | ErrorKind::Reported => RunFailure::Tool(error),
        ErrorKind::Lost | ErrorKind::TimedOut => RunFailure::Lost(error),
        ErrorKind::Unauthorized => RunFailure::Unauthorized(error),
        ErrorKind::Invalid => RunFailure::Output(ProjectError::OutputInvalid(Vec::new())),
        ErrorKind::TooLarge => RunFailure::Output(ProjectError::TooLarge),
    }
}
