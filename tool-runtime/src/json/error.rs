//! [`ParseError`]: the reason and the place of a parse error, without the text.

use std::fmt;

use crate::call::{Outcome, Violation};
use crate::text;

/// The reason why text was refused, and the place. It never quotes the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The kind of error.
    pub kind: ParseErrorKind,
    /// The offset in bytes from the start of the text.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The kind of a parse error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text has more bytes than the limit.
    Bytes {
        /// The limit.
        limit: usize,
    },
    /// Arrays and objects are nested deeper than the limit.
    Depth {
        /// The limit.
        limit: usize,
    },
    /// The syntax is wrong; the string names the expected syntax.
    Syntax(&'static str),
    /// The text ends in the middle of a value.
    Incomplete,
    /// There is text after the value.
    Trailing,
    /// The text is valid JSON, but not an object.
    NotAnObject,
    /// A property name occurs twice in one object.
    DuplicateKey,
    /// A `\u` escape encodes half of a surrogate pair.
    LoneSurrogate,
    /// An integer below `i64::MIN` or above `u64::MAX`.
    IntegerRange,
    /// A number too large for any finite float.
    NotFinite,
}

impl ParseErrorKind {
    /// Returns whether a limit was exceeded; the text itself may be valid.
    #[must_use]
    pub const fn is_limit(self) -> bool {
        matches!(self, Self::Bytes { .. } | Self::Depth { .. })
    }
}

impl ParseError {
    #[cold]
    pub(crate) fn new(kind: ParseErrorKind, read: &str, offset: usize) -> Self {
        let offset = text::cut(read, offset).len();
        let (line, column) = text::line_column(read, offset);
        Self { kind, offset, line, column }
    }

    /// Returns the outcome of a call with such arguments.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self.kind {
            ParseErrorKind::NotAnObject => Outcome::ValidationError,
            kind if kind.is_limit() => Outcome::LimitExceeded,
            _ => Outcome::InvalidJson,
        }
    }

    /// Returns the violation if the text is valid JSON of the wrong type; `None` for other errors.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        (self.kind == ParseErrorKind::NotAnObject).then(|| Violation::new("", "type", "an object"))
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ParseErrorKind::Bytes { limit } => return write!(f, "longer than {limit} bytes"),
            ParseErrorKind::Depth { limit } => return write!(f, "nested deeper than {limit} levels"),
            ParseErrorKind::NotAnObject => return f.write_str("not a JSON object"),
            _ => write!(f, "line {}, column {}: ", self.line, self.column)?,
        }
        f.write_str(match self.kind {
            ParseErrorKind::Syntax(expected) => return write!(f, "expected {expected}"),
            ParseErrorKind::Incomplete => "the JSON ends too early",
            ParseErrorKind::Trailing => "something follows the JSON object; send exactly one object",
            ParseErrorKind::DuplicateKey => "a property name occurs twice in one object",
            ParseErrorKind::LoneSurrogate => "a `\\u` escape encodes half of a surrogate pair",
            ParseErrorKind::IntegerRange => {
                "an integer outside -2^63 to 2^64-1; send it as a string if the argument takes one"
            }
            _ => "a number that is too large",
        })
    }
}

impl std::error::Error for ParseError {}
