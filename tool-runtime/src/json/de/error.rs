//! [`DeError`]: where a tree does not fit a type, without the value.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::call::Violation;
use crate::text::pointer;

/// A type refused a value. `Display` names the place and what would be right, never the value.
pub struct DeError(Box<Inner>);

struct Inner {
    /// Innermost first.
    segments: Vec<String>,
    expected: String,
    detail: Option<String>,
    narrower: bool,
}

impl DeError {
    fn expecting(expected: String) -> Self {
        Self(Box::new(Inner { segments: Vec::new(), expected, detail: None, narrower: false }))
    }

    fn narrower(mut self) -> Self {
        self.0.narrower = true;
        self
    }

    pub(super) fn within(mut self, segment: &str) -> Self {
        self.0.segments.push(segment.to_owned());
        self
    }

    /// JSON Pointer to the value that does not fit, or to the object that lacks one.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        self.0.segments.iter().rev().for_each(|segment| pointer::push(&mut pointer, segment));
        pointer
    }

    /// What would be right.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// What the type itself said, for operators. It can quote the value.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Returns whether the type accepts less than a schema can express (a date that its library refuses), so that the
    /// arguments are at fault. Otherwise the schema and the type disagree, and the tool is at fault.
    #[must_use]
    pub fn is_narrower(&self) -> bool {
        self.0.narrower
    }

    /// Converts into a violation, for the model.
    #[must_use]
    pub fn violation(&self) -> Violation {
        Violation::new(self.pointer(), "format", self.expected())
    }
}

impl Error for DeError {
    // Only the type itself writes such a text, and it may hold the value.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let mut error = Self::expecting("a value that the tool's type accepts".to_owned()).narrower();
        error.0.detail = Some(message.to_string());
        error
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expecting(expected.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expecting(expected.to_string()).narrower()
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::expecting(expected.to_string())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::expecting(format!("one of `{}`", expected.join("`, `")))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self::expecting(format!("only the properties `{}`", expected.join("`, `")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::expecting(format!("the property `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::expecting(format!("the property `{field}` only once"))
    }
}

impl fmt::Display for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer() {
            root if root.is_empty() => write!(f, "expected {}", self.0.expected),
            pointer => write!(f, "{pointer}: expected {}", self.0.expected),
        }
    }
}

impl fmt::Debug for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeError")
            .field("pointer", &self.pointer())
            .field("expected", &self.0.expected)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for DeError {}
