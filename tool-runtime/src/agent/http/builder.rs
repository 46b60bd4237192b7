//! [`HttpModelBuilder`]: the optional settings of an [`HttpModel`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Proxy, Url};

use crate::agent::http::hidden::Hidden;
use crate::agent::http::settings::Settings;
use crate::agent::http::texts::Texts;
use crate::agent::http::{HttpModel, Inner, endpoint, tls};
use crate::agent::{ModelError, ModelErrorKind};
use crate::capability::Secret;
use crate::wire::{AnswerMode, Format};

/// The optional settings of an [`HttpModel`]. Created by [`HttpModel::builder`].
///
/// [`HttpModel`] has an example.
#[must_use]
pub struct HttpModelBuilder {
    base_url: String,
    connect_timeout: Duration,
    proxy: Option<Secret<String>>,
    roots: Vec<Vec<u8>>,
    settings: Settings,
}

impl HttpModelBuilder {
    pub(super) fn new(format: Format, base_url: String, model: String) -> Self {
        Self {
            base_url,
            connect_timeout: Duration::from_secs(10),
            proxy: None,
            roots: Vec::new(),
            settings: Settings::new(format, model),
        }
    }

    /// Sets the API key. The client sends it in the header that the format requires.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.settings.key = Some(Secret::new(key.into()));
        self
    }

    /// Adds a header, or replaces a default header such as `user-agent`. The value is treated as a secret.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.headers.push((name.into(), Secret::new(value.into())));
        self
    }

    /// Sets whether the answer is streamed; `true` by default.
    pub const fn stream(mut self, wanted: bool) -> Self {
        self.settings.stream = wanted;
        self
    }

    /// Sets whether to use the format's strict mode, if it has one; `false` by default. In this mode the client sends
    /// closed copies of the schemas, which allow no other properties, and removes the nulls that these copies add to
    /// the model's calls.
    pub const fn strict(mut self, wanted: bool) -> Self {
        self.settings.strict = wanted;
        self
    }

    /// Sets whether typed answers are requested in the format's schema mode; `true` by default. Use `false` for servers
    /// without that mode, such as some implementations of Chat Completions. The client then offers a tool whose call is
    /// the answer.
    pub const fn schema_answers(mut self, wanted: bool) -> Self {
        self.settings.answers = if wanted { AnswerMode::Schema } else { AnswerMode::Tool };
        self
    }

    /// Sets whether the provider's limits on descriptions and on the number of tools apply; `true` by default. Use
    /// `false` for compatible servers that accept more. See
    /// [`EncodeOptions::provider_limits`](crate::wire::EncodeOptions::provider_limits).
    pub const fn provider_limits(mut self, hold: bool) -> Self {
        self.settings.provider_limits = hold;
        self
    }

    /// Sets the maximum size of one answer in bytes, after decompression; 32 MiB by default.
    pub const fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_response_bytes = bytes;
        self
    }

    /// Sets the time limit of a connection attempt; 10 seconds by default.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the time limit for the first byte of an answer, including the connection; 60 seconds by default. Without
    /// streaming, the first byte comes when the whole answer is written, so the default is then the
    /// [`timeout`](Self::timeout) of the turn. A request that gets no response in time is repeated at most once.
    pub const fn first_byte_timeout(mut self, timeout: Duration) -> Self {
        self.settings.first_byte_timeout = Some(timeout);
        self
    }

    /// Sets the time limit for a pause within an answer; 60 seconds by default. The part of the answer before the pause
    /// is kept.
    pub const fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.settings.idle_timeout = timeout;
        self
    }

    /// Sets the time limit of one turn, including retries; 10 minutes by default. Text that was streamed before the
    /// limit is kept, as an answer that broke off.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Sets the maximum number of retries of a request; two by default. A request is retried if the connection could
    /// not be opened or broke before the response began, or if the status of the answer is 408, 409, 429 or 5xx. A
    /// request that got no response in time is retried once. No retry begins after the [`timeout`](Self::timeout) of
    /// the turn. An `x-should-retry` header in the answer takes precedence over the status.
    pub const fn retries(mut self, times: u32) -> Self {
        self.settings.retries.times = times;
        self
    }

    /// Sets the longest wait before a retry; 30 seconds by default. If the endpoint asks for a longer wait, the request
    /// is not retried.
    pub const fn longest_wait(mut self, wait: Duration) -> Self {
        self.settings.retries.longest = wait;
        self
    }

    /// Sends requests through this proxy, an `http` or `https` URL. Nothing is read from the environment.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(Secret::new(url.into()));
        self
    }

    /// Also trusts the certificate authorities in this PEM text, for endpoints and proxies of a private network.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }

    /// Checks the settings and creates the model.
    ///
    /// # Errors
    /// A URL, header or certificate cannot be used, or the model's name cannot be a part of Gemini's URL. The code is
    /// `model_request_invalid`, and [`ModelError::detail`] names the value to correct.
    pub fn build(self) -> Result<HttpModel, ModelError> {
        let invalid = |detail: String| ModelError::new(ModelErrorKind::Encode, detail);
        let settings = self.settings;
        let url = endpoint::url(&settings, &self.base_url).map_err(invalid)?;
        for (name, _) in &settings.headers {
            if endpoint::OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                return Err(invalid(format!("the header `{name}` is set by the client; leave it out")));
            }
        }
        for (name, value) in endpoint::headers(&settings) {
            HeaderName::try_from(&name).map_err(|_| invalid(format!("`{name}` is not a header name")))?;
            HeaderValue::try_from(value).map_err(|_| invalid(format!("the value of `{name}` cannot be sent")))?;
        }
        let mut builder = tls::client(&self.roots).map_err(invalid)?.connect_timeout(self.connect_timeout);
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(parse_proxy(proxy.expose()).map_err(invalid)?);
        }
        let client = builder.build().map_err(|error| invalid(error.to_string()))?;
        let hidden = Hidden::of(&settings, &url);
        Ok(HttpModel(Arc::new(Inner {
            client,
            url,
            settings,
            unsealed: AtomicBool::new(false),
            texts: Texts::default(),
            hidden,
        })))
    }
}

/// Parses the URL of the proxy. The error does not contain the URL, which can have a password.
fn parse_proxy(text: &str) -> Result<Proxy, String> {
    let wrong = || "the proxy is not a URL that begins with http:// or https://".to_owned();
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(wrong)?;
    Proxy::all(url).map_err(|_| wrong())
}

impl fmt::Debug for HttpModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModelBuilder").field("format", &self.settings.format).finish_non_exhaustive()
    }
}
