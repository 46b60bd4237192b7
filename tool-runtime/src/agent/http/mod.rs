//! [`HttpModel`]: models behind HTTP endpoints (feature `http`).
//!
//! Redirects are refused, answers are bounded in size and time, and nothing is read from the environment: the
//! application gives URL and key.
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

mod endpoint;
mod exchange;
mod retry;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};

use crate::agent::{ModelClient, ModelError, ModelErrorKind, ModelRequest, Show};
use crate::capability::Secret;
use crate::wire::{Decoded, Format, strict};

use retry::Retries;

/// A model behind an HTTP endpoint. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct HttpModel(Arc<Inner>);

struct Inner {
    client: Client,
    url: Url,
    settings: Settings,
}

/// What a request looks like and how long it may take.
struct Settings {
    format: Format,
    model: String,
    key: Option<Secret<String>>,
    headers: Vec<(String, Secret<String>)>,
    stream: bool,
    strict: bool,
    max_output_tokens: u32,
    max_response_bytes: usize,
    timeout: Duration,
    retries: Retries,
}

/// The parts of an [`HttpModel`] that have a default.
#[must_use]
pub struct HttpModelBuilder {
    base_url: String,
    connect_timeout: Duration,
    idle_timeout: Duration,
    settings: Settings,
}

impl HttpModel {
    /// A model of an endpoint. A base URL without a path gets the provider's usual one (`/v1`, for Ollama `/api`).
    pub fn builder(format: Format, base_url: impl Into<String>, model: impl Into<String>) -> HttpModelBuilder {
        HttpModelBuilder {
            base_url: base_url.into(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            settings: Settings {
                format,
                model: model.into(),
                key: None,
                headers: Vec::new(),
                stream: true,
                strict: false,
                max_output_tokens: 4096,
                max_response_bytes: 32 << 20,
                timeout: Duration::from_secs(600),
                retries: Retries::default(),
            },
        }
    }
}

impl HttpModelBuilder {
    /// The key, sent as the format wants it.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.settings.key = Some(Secret::new(key.into()));
        self
    }

    /// One more header. Its value is treated as a secret.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.headers.push((name.into(), Secret::new(value.into())));
        self
    }

    /// Whether the answer is streamed; it is by default.
    pub const fn stream(mut self, wanted: bool) -> Self {
        self.settings.stream = wanted;
        self
    }

    /// Sends closed copies of the schemas where the format has a strict mode, and undoes their nulls.
    pub const fn strict(mut self, wanted: bool) -> Self {
        self.settings.strict = wanted;
        self
    }

    /// The most tokens of one answer: 4,096.
    pub const fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.settings.max_output_tokens = tokens;
        self
    }

    /// The most bytes of one answer, after decompression: 32 MiB.
    pub const fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_response_bytes = bytes;
        self
    }

    /// How long a connection may take: 10 seconds.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the endpoint may be silent: 60 seconds.
    pub const fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// How long one turn may take, retries included: 10 minutes.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// How often a request is repeated when there was no connection, or the answer was 429 or 5xx: twice.
    pub const fn retries(mut self, times: u32) -> Self {
        self.settings.retries.times = times;
        self
    }

    /// The longest wait before a repetition: 30 seconds. An endpoint that wants more time gets no repetition.
    pub const fn longest_wait(mut self, wait: Duration) -> Self {
        self.settings.retries.longest = wait;
        self
    }

    /// Checks the URL and the headers and makes the client.
    ///
    /// # Errors
    /// A URL that is none, a header that cannot be sent, or a format that can only be written.
    pub fn build(self) -> Result<HttpModel, ModelError> {
        let encode = |detail: String| ModelError::new(ModelErrorKind::Encode, detail);
        let url = endpoint::url(self.settings.format, &self.base_url).map_err(encode)?;
        for (name, value) in endpoint::headers(&self.settings) {
            HeaderName::try_from(&name).map_err(|_| encode(format!("`{name}` is no name of a header")))?;
            HeaderValue::try_from(value).map_err(|_| encode(format!("the value of `{name}` is no header value")))?;
        }
        let client = Client::builder()
            .tls_backend_preconfigured(tls().map_err(|error| encode(error.to_string()))?)
            .redirect(redirect::Policy::none())
            .connect_timeout(self.connect_timeout)
            .read_timeout(self.idle_timeout)
            .no_proxy()
            .build()
            .map_err(|error| encode(error.to_string()))?;
        Ok(HttpModel(Arc::new(Inner { client, url, settings: self.settings })))
    }
}

/// TLS 1.2 and 1.3 with the web's usual authorities, independent of what the process chose as its default.
fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[async_trait]
impl ModelClient for HttpModel {
    fn name(&self) -> &str {
        &self.0.settings.model
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
        let settings = &self.0.settings;
        let body = endpoint::body(settings, &request)?;
        let exchange = exchange::exchange(&self.0, body, show);
        let answer = tokio::time::timeout(settings.timeout, exchange).await;
        let mut decoded =
            answer.map_err(|_| ModelError::new(ModelErrorKind::Timeout, "the whole turn took too long"))??;
        if settings.strict && endpoint::has_strict(settings.format) {
            for decoded in &mut decoded.calls {
                if let Some(spec) = request.tools.get(&decoded.call.name) {
                    strict::remove_nulls_from(&mut decoded.call, &spec.input_schema);
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

impl fmt::Debug for HttpModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModelBuilder").field("format", &self.settings.format).finish_non_exhaustive()
    }
}
