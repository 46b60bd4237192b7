//! [`Fault`]: the reason why a value cannot be written. It never contains the value.

use std::fmt;

use serde::ser;

/// The reason why a value cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It has no JSON form: NaN, an infinity, a key that is not a scalar.
    NotJson,
    /// It does not match its schema.
    NotSchema,
    /// It is nested too deeply.
    TooDeep,
    /// The type's own `Serialize` failed.
    Author,
}

impl ser::Error for Fault {
    fn custom<T: fmt::Display>(_: T) -> Self {
        // The text may contain values, so it is dropped.
        Self::Author
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotJson => "not a JSON value",
            Self::NotSchema => "not valid under the schema",
            Self::TooDeep => "nested too deep",
            Self::Author => "the type's `Serialize` failed",
        })
    }
}

impl std::error::Error for Fault {}
