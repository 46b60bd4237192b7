//! [`ParseError`]: a text is none of the values of its type.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// A text is none of the values of its type: an effect, a hash, a wire format, a protocol.
///
/// The message says what to write. It does not repeat the text.
///
/// ```
/// use tool_runtime::ToolEffect;
///
/// let error = "harmless".parse::<ToolEffect>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown effect; write one of `read_only`, `state_change`, `external_side_effect`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError(Cow<'static, str>);

impl ParseError {
    pub(crate) const fn new(message: &'static str) -> Self {
        Self(Cow::Borrowed(message))
    }

    /// The text is none of these names of a `kind`.
    pub(crate) fn none_of<'a>(kind: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
        Self(format!("unknown {kind}; write one of {}", names.join(", ")).into())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ParseError {}
