//! [`HttpModel`]: models behind HTTP endpoints, and [`Notifier`]: delivers notices about tool calls to a webhook
//! (feature `http`).
//!
//! Redirects are refused, and answers are bounded in size and time. The application sets URL, key, proxy and
//! certificates; nothing is read from the environment.
//!
//! ```no_run
//! use std::time::Duration;
//! use tool_runtime::agent::http::HttpModel;
//! use tool_runtime::wire::Format;
//!
//! let model = HttpModel::builder(Format::Anthropic, "https://api.anthropic.com", "claude-sonnet-4-5")
//!     .key("the application's key")
//!     .idle_timeout(Duration::from_secs(30))
//!     .build()?;
//! # Ok::<(), tool_runtime::agent::ModelError>(())
//! ```

mod body;
mod builder;
mod endpoint;
mod exchange;
mod hidden;
mod notifier;
mod provider;
mod retry;
mod settings;
mod signing;
mod texts;
mod tls;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::{Client, Url};

use crate::agent::{DisplayFn, ModelClient, ModelError, ModelRequest};
use crate::call::Arguments;
use crate::wire::{DecodeOptions, Decoded, Format, SentSchema, WireTool};

pub use builder::HttpModelBuilder;
pub use notifier::Notifier;

#[cfg(feature = "mcp-client")]
pub(crate) use tls::client as http_client;

pub(crate) use hidden::Hidden;

use exchange::Attempts;
use settings::Settings;
use texts::Texts;

/// A model behind an HTTP endpoint. Cheap to clone; clones share connections.
///
/// If the settings of a request have no limit on output tokens, the model's own limit applies. Anthropic's API requires
/// a limit, so the client sends 16,000 tokens (4,096 to models before Claude 3.7), plus the tokens of
/// [`ReasoningEffort::Tokens`](crate::wire::ReasoningEffort::Tokens). In a stream, it sends 64,000 tokens for the two
/// highest levels of reasoning to models that accept levels.
///
/// ```
/// use tool_runtime::agent::Agent;
/// use tool_runtime::agent::http::HttpModel;
/// use tool_runtime::wire::{Format, RequestSettings};
///
/// let model = HttpModel::builder(Format::OpenAiChat, "https://api.mistral.ai", "mistral-large-latest")
///     .key("the application's key")
///     .build()?;
/// let settings = RequestSettings::new().temperature(0.2).max_output_tokens(900).legacy_max_tokens(true);
/// let agent = Agent::new(model).settings(settings);
/// # let _ = agent;
/// # Ok::<(), tool_runtime::agent::ModelError>(())
/// ```
#[derive(Clone)]
pub struct HttpModel(Arc<Inner>);

struct Inner {
    client: Client,
    url: Url,
    settings: Settings,
    /// Whether the model has no encrypted reasoning, so that requests must not ask for it.
    unsealed: AtomicBool,
    texts: Texts,
    hidden: Hidden,
}

impl HttpModel {
    /// Returns the builder of a model behind an endpoint. A base URL without a path gets the provider's usual path:
    /// `/api` for Ollama, `/v1beta` for Gemini, and `/v1` for all others.
    pub fn builder(format: Format, base_url: impl Into<String>, model: impl Into<String>) -> HttpModelBuilder {
        HttpModelBuilder::new(format, base_url.into(), model.into())
    }
}

#[async_trait]
impl ModelClient for HttpModel {
    fn name(&self) -> &str {
        &self.0.settings.model
    }

    fn provider(&self) -> &str {
        provider::provider(self.0.settings.format, &self.0.url)
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let hidden = &self.0.hidden;
        match self.ask(request, show).await {
            Ok(decoded) => Ok(hidden.mask_answer(decoded)),
            Err(error) => Err(error.with_detail(|detail| hidden.mask_cut(endpoint::message(detail)))),
        }
    }
}

impl HttpModel {
    async fn ask(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let settings = &self.0.settings;
        let sealed = settings.format == Format::OpenAiResponses && !self.0.unsealed.load(Ordering::Relaxed);
        let tools = self.0.texts.of(settings, &request)?;
        let (body, offered) = endpoint::body(settings, &request, &tools, sealed)?;
        let options = DecodeOptions {
            max_bytes: settings.max_response_bytes,
            model: Some(settings.model.clone()),
            choice: request.settings.tool_choice.clone().unwrap_or_default(),
            offered: Some(offered),
            ..DecodeOptions::default()
        };
        let mut attempts = Attempts::new(settings.timeout);
        let mut decoded = match exchange::exchange(&self.0, body, &options, &mut attempts, show).await {
            Err(error) if sealed && endpoint::refuses_sealed(&error) => {
                let (body, _) = endpoint::body(settings, &request, &tools, false)?;
                let decoded = exchange::exchange(&self.0, body, &options, &mut attempts, show).await?;
                self.0.unsealed.store(true, Ordering::Relaxed);
                decoded
            }
            answer => answer?,
        };
        for decoded in &mut decoded.calls {
            let sent = tools.sent(&decoded.call.name);
            if let Some(spec) =
                request.tools.get(&decoded.call.name).filter(|_| sent == Some(SentSchema::ClosedWithNulls))
            {
                let (Arguments::Text(text) | Arguments::Object(text)) = &mut decoded.call.arguments;
                if let Cow::Owned(less) = WireTool::from(spec).remove_nulls(text) {
                    *text = less.into();
                }
            }
        }
        Ok(decoded)
    }
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("format", &self.0.settings.format)
            .field("model", &self.0.settings.model)
            .finish_non_exhaustive()
    }
}
