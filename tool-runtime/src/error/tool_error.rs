//! [`ToolError`]: the failure of a tool, with a text for models and one for operators.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Write as _};

use crate::contain::caught;
use crate::text::cut;

/// The sentence that a model reads when the author of an error wrote none.
pub(crate) const FIXED_SAFE_MESSAGE: &str = "The tool failed. The reason is kept for its operators.";

/// The failure of a tool, made by its author.
///
/// Any [`std::error::Error`] that is `Send + Sync + 'static` converts into one with `?`. Its text is for operators
/// only. A model reads only the sentence set with [`ToolError::safe`] or [`ToolError::with_safe`], or a fixed sentence
/// if none was set.
///
/// ```
/// use tool_runtime::ToolError;
///
/// let error = ToolError::code("not_found").with_safe("There is no task with this id.");
/// assert_eq!(error.author_code(), Some("not_found"));
/// assert_eq!(error.safe_message(), "There is no task with this id.");
///
/// let error = ToolError::from(std::io::Error::other("disk 7 is gone"));
/// assert!(!error.to_string().contains("disk"));
/// assert!(error.detail().contains("disk"));
/// ```
pub struct ToolError {
    code: Option<Cow<'static, str>>,
    safe: Option<Cow<'static, str>>,
    source: Option<ErrorCause>,
    kind: ErrorKind,
}

/// The runner's classification of an error. Tools create only [`ErrorKind::Tool`] and [`ErrorKind::Lost`]; the MCP
/// client creates every kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "mcp-client"), expect(dead_code, reason = "only sources make the others"))]
pub(crate) enum ErrorKind {
    /// The tool failed.
    Tool,
    /// A server reported a failure. [`ToolError::detail`] contains its text.
    Reported,
    /// The connection broke off after the call was sent.
    Lost,
    /// The server did not answer in time.
    TimedOut,
    /// The server refused the credentials of the account, and did nothing.
    Unauthorized,
    /// The server's answer does not fit its definition.
    Invalid,
    /// The server's answer exceeds the size limit.
    TooLarge,
}

struct ErrorCause {
    error: Box<dyn Error + Send + Sync>,
    type_name: &'static str,
}

impl ErrorCause {
    fn new<S: Into<Box<dyn Error + Send + Sync>>>(source: S) -> Self {
        Self { error: source.into(), type_name: std::any::type_name::<S>() }
    }
}

/// The maximum number of errors of a chain that are read, including the first. There is a limit because an error may
/// name itself as its cause.
const MAX_CAUSES: usize = 32;

/// The longest text of an error with its causes, in bytes.
pub(crate) const MAX_DETAIL_BYTES: usize = 16 * 1024;

impl ToolError {
    /// Creates a failure with a sentence for the model. Write no argument or output values into it.
    pub fn safe(message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: None, safe: Some(message.into()), source: None, kind: ErrorKind::Tool }
    }

    /// Creates a failure with the author's own code, for example `not_found`, inside the outcome `execution_error`.
    pub fn code(code: impl Into<Cow<'static, str>>) -> Self {
        Self { code: Some(code.into()), safe: None, source: None, kind: ErrorKind::Tool }
    }

    /// Creates a failure whose text is for operators only, from an `anyhow::Error`, a `Box<dyn Error + Send + Sync>`,
    /// any other error or a string. For an error that is not `Send + Sync`, pass its text:
    /// `ToolError::internal(error.to_string())`.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { code: None, safe: None, source: Some(ErrorCause::new(source)), kind: ErrorKind::Tool }
    }

    /// Creates a failure after which it is unknown whether the tool had its effect: for example, the request was sent,
    /// and the connection broke before the answer. The call ends as `outcome_unknown`, or as `cancelled` if the tool
    /// only reads; the model reads a fixed sentence, and the text of the source is for operators. Until the outcome is
    /// known, a call of the same tool with the same arguments (for the same tenant and principal) or with the same
    /// effect key does not begin without a person's approval. Tools that are `idempotent` and have no effect key are
    /// exempt.
    ///
    /// ```
    /// use tool_runtime::ToolError;
    ///
    /// /// Sends a request and returns the answer.
    /// fn paid(sent: std::io::Result<()>, answered: std::io::Result<String>) -> Result<String, ToolError> {
    ///     // Nothing was sent, so nothing can have happened.
    ///     sent.map_err(ToolError::internal)?;
    ///     answered.map_err(ToolError::unknown)
    /// }
    /// # assert!(paid(Ok(()), Err(std::io::Error::other("reset"))).is_err());
    /// ```
    pub fn unknown(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: ErrorKind::Lost, ..Self::internal(source) }
    }

    /// Sets the sentence that a model may read.
    #[must_use]
    pub fn with_safe(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.safe = Some(message.into());
        self
    }

    /// Sets the author's code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Cow<'static, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets the cause, for operators.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(ErrorCause::new(source));
        self
    }

    /// Creates the failure of a call to an MCP server.
    #[cfg(feature = "mcp-client")]
    pub(crate) fn of_source(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, ..Self::internal(text.into()) }
    }

    pub(crate) const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the author's code; `None` if the author set none.
    #[must_use]
    pub fn author_code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Returns the sentence that a model may read.
    #[must_use]
    pub fn safe_message(&self) -> &str {
        self.safe.as_deref().unwrap_or(FIXED_SAFE_MESSAGE)
    }

    /// Returns the text for operators: the source and its causes, together at most 32 errors and 16 KiB; empty without
    /// a source. It can contain values, so it is never logged automatically.
    #[must_use]
    pub fn detail(&self) -> String {
        self.source.as_ref().map(|source| chain(&*source.error)).unwrap_or_default()
    }

    /// Returns the name of the source's type, for operators. `None` without a source.
    #[must_use]
    pub fn source_type(&self) -> Option<&'static str> {
        self.source.as_ref().map(|source| source.type_name)
    }
}

/// Returns an error and its causes as one text of limited length. Formatting runs the code of the error's author; if
/// that code panics, the text ends there.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = Bounded(String::new());
    let _ = caught(|| write_chain(&mut text, error));
    text.0
}

fn write_chain(text: &mut Bounded, error: &(dyn Error + 'static)) {
    let mut next = Some(error);
    for at in 0..MAX_CAUSES {
        let Some(error) = next else { return };
        let separator = if at == 0 { "" } else { ": " };
        if write!(text, "{separator}{error}").is_err() {
            break;
        }
        next = error.source();
    }
    if next.is_some() {
        text.0.push_str(" ..");
    }
}

/// A writer that fails at the limit, which ends an endless text.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = MAX_DETAIL_BYTES.saturating_sub(self.0.len());
        let kept = cut(text, left);
        self.0.push_str(kept);
        if kept.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.safe_message())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError").field("code", &self.code).field("safe", &self.safe).finish_non_exhaustive()
    }
}

// `ToolError` itself does not implement `Error`; otherwise this would overlap with `impl From<T> for T`.
impl<E: ErrorSource> From<E> for ToolError {
    fn from(source: E) -> Self {
        Self { code: None, safe: None, source: Some(ErrorCause::new(source)), kind: ErrorKind::Tool }
    }
}

/// An error that `?` converts into a [`ToolError`]: every [`std::error::Error`] that is `Send + Sync + 'static`.
#[diagnostic::on_unimplemented(
    message = "`?` cannot convert `{Self}` into a `ToolError`",
    label = "not a `std::error::Error`: write `.map_err(ToolError::internal)?`; if it is not `Send + Sync`, `.map_err(|error| ToolError::internal(error.to_string()))?`",
    note = "`ToolError::internal` takes `anyhow::Error`, `Box<dyn Error + Send + Sync>`, text and every `std::error::Error` that is `Send + Sync + 'static`"
)]
#[doc(hidden)] // It appears in diagnostics only; authors implement `Error`.
pub trait ErrorSource: Error + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<E: Error + Send + Sync + 'static> ErrorSource for E {}

/// The error of a tool: [`ToolError`], or any [`std::error::Error`] that is `Send + Sync + 'static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool",
    label = "neither `ToolError` nor a `std::error::Error`",
    note = "return `Result<_, ToolError>`: `?` converts every `std::error::Error`, and `.map_err(ToolError::internal)?` converts `anyhow::Error`, `Box<dyn Error + Send + Sync>` and text",
    note = "for an error that is not `Send + Sync`, for example `Box<dyn Error>`, pass its text: `.map_err(|error| ToolError::internal(error.to_string()))?`"
)]
#[doc(hidden)] // For the signature of `#[tool]` functions, which take any error that `?` takes.
pub trait IntoToolError {
    /// Converts the error. Only operators read the text of an error that is not a [`ToolError`].
    fn into_tool_error(self) -> ToolError;
}

impl IntoToolError for ToolError {
    fn into_tool_error(self) -> ToolError {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<E: Error + Send + Sync + 'static> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        self.into()
    }
}
