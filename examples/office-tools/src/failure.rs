//! [`Failure`]: why an adapter could not do what a tool asked.

use std::error::Error;
use std::fmt;

use tool_runtime::ToolError;

/// What went wrong behind a capability. A model reads a fixed sentence for each kind, operators the source.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// There is no such thing.
    NotFound,
    /// It is not allowed there.
    Forbidden,
    /// It is larger than was asked for, or not text.
    Unreadable,
    /// It cannot be done now.
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
    /// The error of a tool over `what`, for example "task".
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
