//! [`ParseError`]: why a string could not be used.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Why a string could not be used: as a tool name, an effect, a hash, a wire format, a protocol, carried JSON or a
/// lock, as the id or the URL of an MCP server, as the definition that such a server lists, as a name in a run's
/// options, or as the URL or a secret of a webhook.
///
/// The message says what to write. Of an untrusted text it repeats only a name that is legal except for its namespace.
/// Where the text has lines, the message names the line.
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
}

impl ParseError {
    pub(crate) const fn new(code: &'static str, message: &'static str) -> Self {
        Self { code, message: Cow::Borrowed(message) }
    }

    /// A message that names what to write. It repeats a string only if every character of it is known to be harmless.
    pub(crate) const fn formatted(code: &'static str, message: String) -> Self {
        Self { code, message: Cow::Owned(message) }
    }

    /// The text is none of these names of a `kind`.
    pub(crate) fn none_of<'a>(code: &'static str, kind: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
        Self { code, message: format!("unknown {kind}; write one of {}", names.join(", ")).into() }
    }

    /// Returns a stable word for the mistake, such as `name_too_long` or `unknown_format`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ParseError {}
