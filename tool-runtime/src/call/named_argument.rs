//! [`NamedArgument`]: the application's name for a value among the arguments.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{plain, quoted};

/// The maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 80;

/// A name that was looked up for a value among the arguments of a call, such as the title of the task behind an id. It
/// is not part of the arguments, and only helps a person to decide.
///
/// A [`NameLookup`](crate::capability::NameLookup) returns the names, and has an example.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NamedArgument {
    /// The place of the value, as a JSON Pointer.
    pub pointer: String,
    /// The name of the value: one line of at most 80 characters. `None` if the value has no name, or if the look-up
    /// failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the look-up failed, so that it is unknown whether there is a name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

impl NamedArgument {
    /// Creates the name from the result of a look-up. `found` is `Err` if the look-up failed.
    pub(crate) fn new(pointer: String, found: Result<Option<String>, ()>) -> Self {
        let failed = found.is_err();
        Self { pointer, name: found.ok().flatten().map(|name| plain(&name, MAX_NAME_CHARS)), failed }
    }

    /// Returns the name with its origin, for a person: `looked up: “Buy milk”`.
    pub(crate) fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("looked up: {}", quoted(name, MAX_NAME_CHARS)),
            None if self.failed => "its name is not available".to_owned(),
            None => "no name was found for it".to_owned(),
        }
    }
}

/// One line for a person: `/task_id (looked up: “Buy milk”)`.
impl fmt::Display for NamedArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pointer, self.label())
    }
}

// Names stay out of logs.
impl fmt::Debug for NamedArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedArgument")
            .field("pointer", &self.pointer)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::NamedArgument;

    #[test]
    fn a_name_is_bounded_and_says_where_it_comes_from() {
        let line = |found| NamedArgument::new("/id".to_owned(), found).to_string();
        assert_eq!(line(Ok(Some("Buy\n “milk”".to_owned()))), "/id (looked up: “Buy 'milk'”)");
        assert_eq!(line(Ok(None)), "/id (no name was found for it)");
        assert_eq!(line(Err(())), "/id (its name is not available)");
        let long = NamedArgument::new("/id".to_owned(), Ok(Some("x".repeat(100_000)))).name.unwrap();
        assert_eq!((long.chars().count(), long.ends_with('…')), (80, true));
    }
}
