//! Services of the client that made a call: [`Progress`], [`Elicit`] and [`Sample`].
//!
//! A client, for example of an MCP server, can offer them, and the runner binds them for the calls of that client. For
//! a call without such a client, reports and notices are dropped, and a question fails with
//! [`ClientError::Unsupported`]. An application may bind its own adapters, which serve the calls whose client does not
//! offer the service.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::capability;
use crate::capability::Capabilities;

/// Reports the progress of a call to the client that made it. A report holds numbers and string literals only, so it
/// needs no allowlist.
///
/// ```
/// use tool_runtime::capability::Progress;
/// use tool_runtime::{ToolError, tool};
///
/// /// Indexes the archive.
/// #[tool(name = "archive__index", effect = read_only, redact = ["$"])]
/// async fn index(progress: &dyn Progress) -> Result<u32, ToolError> {
///     progress.notice(tracing::Level::INFO, "the old index is still in use");
///     for page in 0..100_u32 {
///         progress.report(page.into(), Some(100.0));
///     }
///     Ok(100)
/// }
/// ```
#[capability(effect = read_only)]
pub trait Progress {
    /// Reports the completed amount and, if known, the total, in any unit. The MCP server drops a report whose amount
    /// is not larger than the previous amount. It also drops a report less than 20 ms after one that it sent, except
    /// the last report of the call.
    fn report(&self, done: f64, total: Option<f64>);

    /// Sends a log line, if the client wants lines of this level. `line` is a string literal, so it cannot contain
    /// values.
    fn notice(&self, level: tracing::Level, line: &'static str);
}

/// Asks the person at the client to fill in a form.
///
/// No allowlist filters the question, so a tool that borrows `Elicit` needs the effect `external_side_effect`.
///
/// ```
/// use serde_json::json;
/// use tool_runtime::capability::Elicit;
/// use tool_runtime::{ToolError, tool};
///
/// /// Books a table.
/// #[tool(name = "tables__book", effect = external_side_effect, redact = ["$"])]
/// async fn book(elicit: &dyn Elicit) -> Result<String, ToolError> {
///     let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
///     let answer = elicit.ask("In which name?", &form).await.map_err(|error| {
///         ToolError::code("no_name").with_safe("The booking needs a name.").with_source(error)
///     })?;
///     Ok(answer["name"].as_str().unwrap_or_default().to_owned())
/// }
/// ```
#[capability(effect = external_side_effect)]
#[async_trait]
pub trait Elicit {
    /// Shows `message` and `form`, and returns an answer that fits the form. `form` is the JSON Schema of an object
    /// whose members are strings, numbers, booleans and choices. It must not ask for secrets.
    ///
    /// # Errors
    /// The client does not offer forms, `form` is not a form that a client can show, the person declined or closed it,
    /// the client failed, or the answer does not fit the form.
    async fn ask(&self, message: &str, form: &Value) -> Result<Value, ClientError>;
}

/// Asks the client's model.
///
/// No allowlist filters the prompt, so a tool that borrows `Sample` needs the effect `external_side_effect`. The answer
/// is untrusted text.
///
/// ```
/// use tool_runtime::capability::Sample;
/// use tool_runtime::{ToolError, tool};
///
/// /// Suggests a title for the report of the day.
/// #[tool(name = "reports__title", effect = external_side_effect, redact = ["$"])]
/// async fn title(model: &dyn Sample) -> Result<String, ToolError> {
///     Ok(model.sample("Suggest a title for the sales report of today.", 20).await?)
/// }
/// ```
#[capability(effect = external_side_effect)]
#[async_trait]
pub trait Sample {
    /// Sends `prompt` as one user message. Returns the text of the answer, which has at most `max_tokens` tokens.
    ///
    /// # Errors
    /// The client does not offer its model, the request was declined, the client failed, or the answer has no text.
    async fn sample(&self, prompt: &str, max_tokens: u32) -> Result<String, ClientError>;
}

/// The reason why a client did not answer a question. It contains no text of the question or the answer.
///
/// [`Elicit`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no client, or the client does not offer the service.
    Unsupported,
    /// The person declined.
    Declined,
    /// The person closed the question, or the client failed.
    Cancelled,
    /// The form is not one that a client can show.
    Form,
    /// The answer does not fit the question.
    Answer,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsupported => "the client does not offer this",
            Self::Declined => "the person at the client declined",
            Self::Cancelled => "the client gave no answer",
            Self::Form => "the form is not an object of strings, numbers, booleans and choices",
            Self::Answer => "the client's answer does not fit the question",
        })
    }
}

impl std::error::Error for ClientError {}

/// The adapter for calls without a client: it drops reports and fails questions.
struct NoClient;

impl Progress for NoClient {
    fn report(&self, _: f64, _: Option<f64>) {}

    fn notice(&self, _: tracing::Level, _: &'static str) {}
}

#[async_trait]
impl Elicit for NoClient {
    async fn ask(&self, _: &str, _: &Value) -> Result<Value, ClientError> {
        Err(ClientError::Unsupported)
    }
}

#[async_trait]
impl Sample for NoClient {
    async fn sample(&self, _: &str, _: u32) -> Result<String, ClientError> {
        Err(ClientError::Unsupported)
    }
}

/// Returns the initial bindings of every runner, for calls without a client.
pub(crate) fn without_client() -> Capabilities {
    let nobody = Arc::new(NoClient);
    Capabilities::new()
        .with::<dyn Progress>(Arc::clone(&nobody) as _)
        .with::<dyn Elicit>(Arc::clone(&nobody) as _)
        .with::<dyn Sample>(nobody)
}
