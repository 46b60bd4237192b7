//! [`ParseError`]: the error for a string that cannot be parsed.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// The error for a string that cannot be parsed, for example a tool name, a hash, the name of a wire format, a lock,
/// the URL of an MCP server, or the body that a chat UI sent. [`code`](Self::code) distinguishes the cases.
///
/// The message names a correction. It repeats untrusted text only if the text is a tool name without illegal
/// characters. For a text with several lines, the message names the line. For a body or a history of a chat UI, the
/// error has a [pointer](Self::pointer).
///
/// ```
/// use tool_runtime::ToolEffect;
///
/// let error = "harmless".parse::<ToolEffect>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown effect; write one of `read_only`, `state_change`, `external_side_effect`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    code: &'static str,
    message: Cow<'static, str>,
    pointer: Option<Box<str>>,
}

impl ParseError {
    pub(crate) const fn new(code: &'static str, message: &'static str) -> Self {
        Self { code, message: Cow::Borrowed(message), pointer: None }
    }

    /// Creates an error with this message. It may repeat a string only if all characters are known to be harmless.
    pub(crate) const fn formatted(code: &'static str, message: String) -> Self {
        Self { code, message: Cow::Owned(message), pointer: None }
    }

    /// Creates the error for a text that is none of these names of a `kind`.
    pub(crate) fn none_of<'a>(code: &'static str, kind: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
        Self::formatted(code, format!("unknown {kind}; write one of {}", names.join(", ")))
    }

    /// Adds the place of the mistake, as a JSON Pointer.
    #[cfg(feature = "wire")]
    pub(crate) fn at(mut self, pointer: impl Into<Box<str>>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Returns a stable word for the mistake, such as `name_too_long` or `unknown_format`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the place of the mistake in the body or the history that a chat UI sent, as a JSON Pointer (RFC 6901);
    /// empty for the whole text. `None` for every other string.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.pointer.as_deref()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.pointer() {
            None | Some("") => Ok(()),
            Some(pointer) => write!(f, " at {pointer}"),
        }
    }
}

impl Error for ParseError {}
