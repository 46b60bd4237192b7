//! [`ModelClient`]: the one function that calls a model.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::call::{CallId, Outcome, ToolCall, shown};
use crate::catalog::CatalogView;
use crate::error::{MAX_DETAIL_BYTES, chain};
use crate::json;
use crate::text::cut;
use crate::tool::Hash;
use crate::wire::{Decoded, DisplayEvent, Finish, Message, RequestSettings, Usage, WireTool};

/// Takes the events of an answer while they arrive, for display only.
pub type Show<'a> = dyn FnMut(DisplayEvent<'_>) + Send + 'a;

/// Asks a model for its next turn. Implement it with [`macro@async_trait`]. Dropping the future cancels the request. A
/// panic ends the turn as [`ModelErrorKind::Panicked`].
///
/// ```
/// use async_trait::async_trait;
/// use tool_runtime::agent::{ModelClient, ModelError, ModelErrorKind, ModelRequest, Show};
/// use tool_runtime::wire::{DecodeOptions, Decoded, Format};
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
///     async fn complete(&self, _: ModelRequest<'_>, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
///         let mut decoder = Format::OpenAiChat.decoder(DecodeOptions::default());
///         decoder.push_with(&self.0, show);
///         Ok(decoder.finish())
///     }
/// }
/// ```
#[async_trait]
pub trait ModelClient: Send + Sync {
    /// Returns the model's name, for accounts, spans and hashes.
    fn name(&self) -> &str;

    /// Returns the provider as the semantic conventions of `OpenTelemetry` call it (`gen_ai.provider.name`): `openai`,
    /// `anthropic`, `gcp.gemini` or a name of its own; `_OTHER` by default.
    #[expect(clippy::unnecessary_literal_bound, reason = "others return what they hold")]
    fn provider(&self) -> &str {
        "_OTHER"
    }

    /// Asks for one turn. `show` takes what arrives while it arrives; what counts is the returned value.
    ///
    /// # Errors
    /// No answer began. An answer that began and broke off is returned with [`Decoded::error`] set.
    async fn complete(&self, request: ModelRequest<'_>, show: &mut Show<'_>) -> Result<Decoded, ModelError>;
}

#[async_trait]
impl<M: ModelClient + ?Sized> ModelClient for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider(&self) -> &str {
        (**self).provider()
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
        (**self).complete(request, show).await
    }
}

/// A request for one turn of a model.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ModelRequest<'a> {
    /// The whole history, each call followed by its result.
    pub messages: &'a [Message],
    /// The tools that the model may see.
    pub tools: &'a CatalogView,
    /// What the turn asks for in addition to messages and tools. A client that cannot express a setting leaves it out.
    pub settings: &'a RequestSettings,
    /// What the final answer has to be; `None` for text. A client asks for JSON that fits the input schema, in the
    /// provider's own mode for schemas, or offers this tool in addition: its call is the answer. The agent checks
    /// the answer.
    pub answer: Option<WireTool<'a>>,
}

impl<'a> ModelRequest<'a> {
    /// Creates a request.
    #[must_use]
    pub const fn new(messages: &'a [Message], tools: &'a CatalogView, settings: &'a RequestSettings) -> Self {
        Self { messages, tools, settings, answer: None }
    }

    /// Returns the SHA-256 of model, messages and the hash of the visible catalog.
    #[must_use]
    pub fn prompt_hash(&self, model: &str) -> Hash {
        let prompt = serde_json::to_vec(&(model, self.messages, self.tools.hash()));
        json::digest(prompt.unwrap_or_default())
    }
}

/// The account of one turn of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelTurn {
    /// The model.
    pub model: String,
    /// The hash of model, messages and visible catalog, see [`ModelRequest::prompt_hash`].
    pub prompt_hash: Hash,
    /// The provider's id of the response. `None` if it sent none.
    pub response_id: Option<String>,
    /// How the turn ended.
    pub finish: Finish,
    /// The tokens. `None` if the provider did not count them.
    pub usage: Option<Usage>,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
    /// The calls of the turn, in the model's order.
    pub calls: Vec<TurnCall>,
}

/// The account of one call of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnCall {
    /// The id of the call.
    pub id: CallId,
    /// The name as the model wrote it, cut to 128 bytes.
    pub name: String,
    /// How the call ended or why it waits. `None` while it runs.
    pub outcome: Option<Outcome>,
    /// The model made the call although the request forced another choice. It goes through the gate like any other: a
    /// choice guides a model, it does not authorise.
    pub outside_choice: bool,
}

impl TurnCall {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self { id: call.id.clone(), name: shown(&call.name), outcome: None, outside_choice: call.outside_choice }
    }
}

/// Why a model gave no answer. `Display` is safe to show; the provider's own words are in [`ModelError::detail`].
///
/// ```
/// use tool_runtime::agent::{ModelError, ModelErrorKind};
///
/// let error = ModelError::new(ModelErrorKind::Status(429), "quota of project 7 exceeded");
/// assert_eq!(error.code(), "model_overloaded");
/// assert!(!error.to_string().contains("project 7"));
/// ```
pub struct ModelError {
    kind: ModelErrorKind,
    detail: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of [`ModelError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The request cannot be written in the provider's format.
    Encode,
    /// No connection, or it broke before an answer began.
    Connect,
    /// The answer did not begin in time.
    Timeout,
    /// The provider answered with this status.
    Status(u16),
    /// The provider redirected the request; redirects are never followed.
    Redirect,
    /// The answer is larger than allowed.
    TooLarge,
    /// The answer is not of the format: HTML, an empty body, another content.
    Protocol,
    /// A script has no turn for this request.
    Script,
    /// The [`ModelClient`] panicked. The message of the panic is the detail.
    Panicked,
}

impl ModelError {
    /// Creates an error. `detail` is for operators and may hold anything.
    #[must_use]
    pub fn new(kind: ModelErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), source: None }
    }

    /// Keeps the error that caused this one, for operators.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns what happened.
    #[must_use]
    pub const fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.kind {
            ModelErrorKind::Encode => "model_request_invalid",
            ModelErrorKind::Connect => "model_unreachable",
            ModelErrorKind::Timeout => "model_timeout",
            ModelErrorKind::Status(401 | 403) => "model_unauthorised",
            ModelErrorKind::Status(429) => "model_overloaded",
            ModelErrorKind::Status(_) => "model_refused",
            ModelErrorKind::Redirect => "model_redirect",
            ModelErrorKind::TooLarge => "model_answer_too_large",
            ModelErrorKind::Protocol => "model_protocol",
            ModelErrorKind::Script => "model_script",
            ModelErrorKind::Panicked => "model_panicked",
        }
    }

    /// Returns the provider's own words, for operators. They can hold anything, quotes of the prompt included.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl ModelError {
    /// The detail and its causes, for operators.
    pub(super) fn chain(&self) -> String {
        let causes = self.source.as_ref().map(|source| chain(&**source));
        let text = match causes {
            Some(causes) if causes.starts_with(&self.detail) => causes,
            Some(causes) => format!("{}: {causes}", cut(&self.detail, MAX_DETAIL_BYTES)),
            None => self.detail.clone(),
        };
        cut(&text, MAX_DETAIL_BYTES).to_owned()
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ModelErrorKind::Encode => f.write_str("the request cannot be written in the provider's format"),
            ModelErrorKind::Connect => f.write_str("the model cannot be reached"),
            ModelErrorKind::Timeout => f.write_str("the model did not answer in time"),
            ModelErrorKind::Status(status @ (401 | 403)) => {
                write!(f, "the provider does not accept the key (status {status})")
            }
            ModelErrorKind::Status(429) => {
                f.write_str("the provider is overloaded or the quota is used up (status 429)")
            }
            ModelErrorKind::Status(status) => write!(f, "the provider refused the request (status {status})"),
            ModelErrorKind::Redirect => {
                f.write_str("the provider redirects, and redirects are not followed: correct the URL")
            }
            ModelErrorKind::TooLarge => f.write_str("the model's answer is larger than allowed"),
            ModelErrorKind::Protocol => {
                f.write_str("the answer does not follow the format: is this the right URL and format?")
            }
            ModelErrorKind::Script => f.write_str("the script has no turn for this request"),
            ModelErrorKind::Panicked => f.write_str("the model's client failed unexpectedly"),
        }
    }
}

// The provider's words stay out of logs, because they can quote the prompt.
impl fmt::Debug for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
