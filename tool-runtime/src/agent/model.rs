//! [`ModelClient`]: the trait that calls a model, with its request and the summaries of turns.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::agent::ModelError;
use crate::call::{CallId, Outcome, ToolCall, shown};
use crate::catalog::CatalogView;
use crate::json;
use crate::tool::Hash;
use crate::wire::{Decoded, DisplayEvent, FinishReason, Message, RequestSettings, Usage, WireTool};

/// Receives the events of an answer while they arrive, for display only.
///
/// [`ModelClient`] has an example.
pub type DisplayFn<'a> = dyn FnMut(DisplayEvent<'_>) + Send + 'a;

/// Asks a model for its next turn. Implement it with [`macro@async_trait`]. Dropping the future cancels the request. A
/// panic ends the request as `model_panicked`.
///
/// ```
/// use async_trait::async_trait;
/// use tool_runtime::agent::{ModelClient, ModelError, ModelRequest, DisplayFn};
/// use tool_runtime::wire::{Decoded, Format};
///
/// /// Replays one recorded response.
/// struct Recorded(Vec<u8>);
///
/// #[async_trait]
/// impl ModelClient for Recorded {
///     fn name(&self) -> &str {
///         "recorded"
///     }
///
///     async fn complete(&self, _: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
///         let mut decoder = Format::OpenAiChat.decoder();
///         decoder.push_with(&self.0, show);
///         Ok(decoder.finish())
///     }
/// }
/// ```
#[async_trait]
pub trait ModelClient: Send + Sync {
    /// Returns the model's name, for summaries of turns, spans and hashes.
    fn name(&self) -> &str;

    /// Returns the provider by its name in the semantic conventions of `OpenTelemetry` (`gen_ai.provider.name`):
    /// `openai`, `anthropic`, `gcp.gemini` or a custom name; `_OTHER` by default.
    #[expect(clippy::unnecessary_literal_bound, reason = "implementations return a field")]
    fn provider(&self) -> &str {
        "_OTHER"
    }

    /// Asks for one turn. `show` receives the parts as they arrive, for display; only the returned value counts.
    ///
    /// # Errors
    /// No answer began. An answer that began and broke off is returned with [`Decoded::error`] set.
    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError>;
}

#[async_trait]
impl<M: ModelClient + ?Sized> ModelClient for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider(&self) -> &str {
        (**self).provider()
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        (**self).complete(request, show).await
    }
}

/// A request for one turn of a model.
///
/// ```
/// use tool_runtime::agent::ModelRequest;
/// use tool_runtime::wire::{EncodeError, EncodeOptions, Format, Message, RequestSettings};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// /// The body of a request for Chat Completions.
/// fn body(request: &ModelRequest<'_>, model: &str) -> Result<serde_json::Value, EncodeError> {
///     let format = Format::OpenAiChat;
///     let mut body = format.encode_tools(request.tools.specs(), &EncodeOptions::default())?.body;
///     body.extend(format.encode_settings(request.settings, Some(model))?.body);
///     body.insert("model".to_owned(), model.into());
///     let history = format.encode_messages(request.messages, Some(model)).body;
///     body.insert("messages".to_owned(), serde_json::json!(history["messages"]));
///     Ok(body.into())
/// }
///
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let run = runner.run(RunOptions::new());
/// let (history, settings) = ([Message::user("Hi!")], RequestSettings::new().temperature(0.2));
/// let body = body(&ModelRequest::new(&history, run.catalog(), &settings), "gpt-5")?;
/// assert_eq!(body["messages"][0]["content"], "Hi!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ModelRequest<'a> {
    /// The instructions as a system message, if there are any, and then the whole history, each call followed by its
    /// result.
    pub messages: &'a [Message],
    /// The tools that the request offers: all tools that the model may see, or the tools that were
    /// [picked](crate::agent::Agent::pick).
    pub tools: &'a CatalogView,
    /// The settings of the turn in addition to messages and tools. A client that cannot express a setting leaves it
    /// out.
    pub settings: &'a RequestSettings,
    /// The schema of the final answer, in the form of a tool; `None` for a text answer. A client requests JSON that
    /// matches the tool's input schema in the provider's schema mode, or offers the tool in addition to `tools`, so
    /// that the model answers with a call of it. The agent checks the answer.
    pub answer: Option<WireTool<'a>>,
}

impl<'a> ModelRequest<'a> {
    /// Creates a request.
    #[must_use]
    pub const fn new(messages: &'a [Message], tools: &'a CatalogView, settings: &'a RequestSettings) -> Self {
        Self { messages, tools, settings, answer: None }
    }

    /// Returns the SHA-256 of the model's name, the messages and the hash of the offered tools.
    #[must_use]
    pub fn prompt_hash(&self, model: &str) -> Hash {
        let prompt = serde_json::to_vec(&(model, self.messages, self.tools.hash()));
        json::digest(prompt.unwrap_or_default())
    }
}

/// A summary of one turn of a model.
///
/// ```
/// use tool_runtime::agent::Agent;
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let turns = [ScriptedTurn::call("call_1", "games__roll", "{}"), ScriptedTurn::text("I cannot.").using(60, 4)];
/// let mut conversation = Agent::new(ScriptedModel::new(turns)).converse(runner.run(RunOptions::new()));
/// conversation.send("Roll a die!").await;
///
/// let [first, second] = conversation.turns() else { panic!("two turns") };
/// assert_eq!(first.calls[0].outcome.map(|outcome| outcome.code()), Some("unavailable"));
/// assert_eq!(second.usage.map(|usage| usage.output_tokens), Some(4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelTurn {
    /// The model's name.
    pub model: String,
    /// The hash of the model's name, the messages and the offered tools, see [`ModelRequest::prompt_hash`].
    pub prompt_hash: Hash,
    /// The provider's id of the response. `None` if it sent none.
    pub response_id: Option<String>,
    /// How the turn ended.
    pub finish: FinishReason,
    /// The tokens. If the provider did not count them, they are an [estimate](Usage::estimated) if a budget limits
    /// them, and `None` otherwise.
    pub usage: Option<Usage>,
    /// The duration of the turn, in milliseconds.
    pub latency_ms: u64,
    /// The calls of the turn, in the model's order.
    pub calls: Vec<TurnCall>,
}

/// A summary of one call of a turn.
///
/// [`ModelTurn`] has an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnCall {
    /// The id of the call.
    pub id: CallId,
    /// The name as the model wrote it, cut to 128 bytes.
    pub name: String,
    /// How the call ended or why it waits. `None` while it runs.
    pub outcome: Option<Outcome>,
    /// Whether the model made the call although the request forced another choice. The gate treats it like any other
    /// call, because a choice guides the model but grants nothing.
    pub outside_choice: bool,
}

impl TurnCall {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self { id: call.id.clone(), name: shown(&call.name), outcome: None, outside_choice: call.outside_choice }
    }
}
