//! [`Failure`]: the error of an adapter.

use std::error::Error;
use std::fmt;

use tool_runtime::ToolError;

/// The error of an adapter. A model reads a fixed sentence for each kind; operators also read the source.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The item does not exist.
    NotFound,
    /// The item may not be accessed.
    Forbidden,
    /// The item is too large, or not text.
    Unreadable,
    /// The system that the adapter uses failed.
    Unavailable(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "there is no such thing",
            Self::Forbidden => "this is not allowed",
            Self::Unreadable => "this cannot be read as text",
            Self::Unavailable(_) => "this is not available at the moment",
        })
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(source) => Some(source.as_ref()),
            _ => None,
        }
    }
}

impl Failure {
    /// Returns the error of a tool that works on `what`, for example "task".
    #[must_use]
    pub fn of(self, what: &str) -> ToolError {
        let (code, text) = match &self {
            Self::NotFound => ("not_found", format!("There is no such {what}.")),
            Self::Forbidden => ("forbidden", format!("This {what} is out of bounds.")),
            Self::Unreadable => ("unreadable", format!("The {what} is not text, or too large.")),
            Self::Unavailable(_) => ("unavailable", format!("The {what} cannot be reached at the moment.")),
        };
        ToolError::code(code).with_safe(text).with_source(self)
    }
}
