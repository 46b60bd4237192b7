//! [`Violation`]: one place where arguments or a value break a rule, without the value.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{pointer, sentence};

/// The maximum length in bytes of the expected value in a message.
const MAX_EXPECTED_BYTES: usize = 256;

/// A broken rule and its place in the arguments or the value. It never contains the value.
///
/// ```
/// use tool_runtime::call::Violation;
///
/// let violation = Violation::of("delta", "other than 0").with_hint("Leave the part alone instead.");
/// assert_eq!((&*violation.pointer, &*violation.keyword), ("/delta", "semantic"));
/// let inside = Violation::at("/parts/2/delta", "other than 0");
/// assert_eq!((&*inside.pointer, &*inside.keyword), ("/parts/2/delta", "semantic"));
/// assert_eq!(violation.to_string(), "/delta: semantic, other than 0");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Violation {
    /// The place in the arguments, as a JSON Pointer (RFC 6901); empty for the root.
    pub pointer: String,
    /// The keyword of JSON Schema, or `semantic`, `require_any` or `evidence`.
    pub keyword: String,
    /// The expected value. Empty in a record, which holds only the place and the rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// Better advice than `expected`; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Violation {
    /// Creates a violation by one argument, with the keyword `semantic`. `argument` is its name in the schema. If the
    /// tool has no such argument, the runner logs this and reports the violation for the whole call. For a place inside
    /// an argument, use [`at`](Self::at).
    #[must_use]
    pub fn of(argument: &str, expected: impl Into<String>) -> Self {
        Self::at(pointer::segment(argument), expected)
    }

    /// Creates a violation at a JSON Pointer, such as `/items/2/count`, with the keyword `semantic`.
    #[must_use]
    pub fn at(pointer: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::new(pointer, "semantic", expected)
    }

    /// Creates a violation at a JSON Pointer, with the keyword of a rule.
    #[must_use]
    #[cold]
    pub fn new(pointer: impl Into<String>, keyword: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), keyword: keyword.into(), expected: expected.into(), hint: None }
    }

    /// Returns the place and the rule, for a record.
    pub(crate) fn recorded(&self) -> Self {
        Self::new(self.pointer.clone(), self.keyword.clone(), "")
    }

    /// Adds advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The place, the keyword and the expected value, such as `/count: maximum, at most 500`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{}: {}", place.escape_debug(), self.keyword)?;
        if self.expected.is_empty() {
            return Ok(());
        }
        write!(f, ", {}", sentence(&self.expected, MAX_EXPECTED_BYTES).replace('\n', " "))
    }
}
