//! [`ModelError`]: the reason why a model gave no answer.

use std::fmt;
use std::time::Duration;

use crate::error::{MAX_DETAIL_BYTES, chain};
use crate::text::cut;

/// The reason why a model gave no answer. `Display` is safe to show; the provider's own message is in
/// [`ModelError::detail`].
///
/// ```
/// use tool_runtime::agent::ModelError;
///
/// let error = ModelError::refused(429, "quota of project 7 exceeded");
/// assert_eq!((error.code(), error.status()), ("model_overloaded", Some(429)));
/// assert!(!error.to_string().contains("project 7"));
/// ```
pub struct ModelError {
    kind: ModelErrorKind,
    detail: String,
    wait: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of [`ModelError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelErrorKind {
    /// The request cannot be written in the provider's format.
    Encode,
    /// The connection could not be opened, or broke before an answer began.
    Connect,
    /// The answer did not begin in time.
    Timeout,
    /// The provider answered with this status.
    Status(u16),
    /// The provider redirected the request; redirects are never followed.
    Redirect,
    /// The answer is larger than allowed.
    TooLarge,
    /// The answer is not in the expected format: HTML, an empty body, or other content.
    Protocol,
    /// The script of a `ScriptedModel` has no turn for this request.
    Script,
    /// The [`ModelClient`](crate::agent::ModelClient) panicked. The message of the panic is the detail.
    Panicked,
}

impl ModelError {
    pub(crate) fn new(kind: ModelErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), wait: None, source: None }
    }

    /// Creates the error of a request that cannot be written in the provider's format. As in all constructors, `detail`
    /// is for operators and may contain anything.
    #[must_use]
    pub fn encode(detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Encode, detail)
    }

    /// Creates the error of a connection that could not be opened, or that broke before an answer began.
    #[must_use]
    pub fn connect(detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Connect, detail)
    }

    /// Creates the error of an answer that did not begin in time.
    #[must_use]
    pub fn timeout(detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Timeout, detail)
    }

    /// Creates the error of a provider that redirected the request. A client must not follow redirects: they would send
    /// the conversation to another host.
    #[must_use]
    pub fn redirected(detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Redirect, detail)
    }

    /// Creates the error of a provider that answered with an HTTP status other than success.
    #[must_use]
    pub fn refused(status: u16, detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Status(status), detail)
    }

    /// Creates the error of an answer that is larger than allowed.
    #[must_use]
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::TooLarge, detail)
    }

    /// Creates the error of an answer that is not in the expected format.
    #[must_use]
    pub fn protocol(detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Protocol, detail)
    }

    /// Sets the wait that the provider requests before the next request.
    #[must_use]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Returns the wait that the provider requests before the next request; `None` if it requests none.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        self.wait
    }

    /// Adds the error that caused this one, for operators.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the HTTP status of the provider's refusal; `None` for every other error.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self.kind {
            ModelErrorKind::Status(status) => Some(status),
            _ => None,
        }
    }

    #[cfg(feature = "http")]
    pub(crate) const fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// Returns the stable code: `model_request_invalid`, `model_unreachable`, `model_timeout`, `model_unauthorised`,
    /// `model_overloaded`, `model_refused`, `model_redirect`, `model_answer_too_large`, `model_protocol`,
    /// `model_script` or `model_panicked`.
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

    /// Returns the provider's own message, for operators. It can contain anything, including quotes of the prompt.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl ModelError {
    /// Returns the same error with another detail.
    #[cfg(feature = "http")]
    pub(super) fn with_detail(mut self, write: impl FnOnce(&str) -> String) -> Self {
        self.detail = write(&self.detail);
        self
    }

    /// Returns the detail and the causes, for operators.
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
                f.write_str("the answer does not follow the format: check the URL and the format")
            }
            ModelErrorKind::Script => f.write_str("the script has no turn for this request"),
            ModelErrorKind::Panicked => f.write_str("the model's client failed unexpectedly"),
        }?;
        match self.wait {
            Some(wait) if !wait.is_zero() => write!(f, "; it asks to wait {} seconds", wait.as_secs_f64().ceil()),
            _ => Ok(()),
        }
    }
}

// The provider's message stays out of logs, because it can quote the prompt.
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
