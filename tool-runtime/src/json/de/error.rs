//! [`DeError`]: the error of a value that does not fit its type. It does not contain the value.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::call::Violation;
use crate::text::{nearest, pointer};

/// The error of a value that a type refused. `Display` names the place and the expected value, never the value itself.
pub struct DeError(Box<Inner>);

struct Inner {
    /// The names on the path to the value, innermost first.
    segments: Vec<String>,
    expected: String,
    detail: Option<String>,
    kind: DeErrorKind,
}

/// The reason why a value was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeErrorKind {
    /// The value has another JSON type.
    Type,
    /// The value has the right JSON type, but is not allowed.
    Value,
    /// The type has no such property. Contains the property with the nearest name.
    Property(Option<&'static str>),
    /// The type has no such variant. Contains the variant with the nearest name.
    Word(Option<&'static str>),
    /// Too few or too many elements, or a missing or repeated property.
    Count,
}

impl DeError {
    #[cold]
    fn expecting(kind: DeErrorKind, expected: String) -> Self {
        Self(Box::new(Inner { segments: Vec::new(), expected, detail: None, kind }))
    }

    pub(super) fn within(mut self, segment: &str) -> Self {
        self.0.segments.push(segment.to_owned());
        self
    }

    /// Returns the JSON Pointer to the value that does not fit, or to the object that lacks a property.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        self.0.segments.iter().rev().for_each(|segment| pointer::push(&mut pointer, segment));
        pointer
    }

    /// Returns the expected value.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// Returns the type's own message, for operators; `None` if it wrote none. The message can contain the value.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Returns whether the type accepts less than a schema can express, such as a date that its library refuses. In
    /// that case the arguments are at fault. Otherwise the schema and the type disagree, and the tool is at fault.
    #[must_use]
    pub fn is_narrower(&self) -> bool {
        self.0.kind == DeErrorKind::Value
    }

    pub(crate) fn kind(&self) -> DeErrorKind {
        self.0.kind
    }

    /// Converts the error to a violation, for the model.
    #[must_use]
    pub fn violation(&self) -> Violation {
        let keyword = match self.0.kind {
            DeErrorKind::Type => "type",
            DeErrorKind::Value => "format",
            DeErrorKind::Property(_) => "additionalProperties",
            DeErrorKind::Word(_) => "enum",
            DeErrorKind::Count => "required",
        };
        Violation::new(self.pointer(), keyword, self.expected())
    }
}

impl Error for DeError {
    // The type itself wrote this message, so it may contain the value.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let mut error = Self::expecting(DeErrorKind::Value, "a value that the tool's type accepts".to_owned());
        error.0.detail = Some(message.to_string());
        error
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expecting(DeErrorKind::Type, expected.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expecting(DeErrorKind::Value, expected.to_string())
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::expecting(DeErrorKind::Count, expected.to_string())
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let nearest = nearest(variant, expected.iter().copied());
        Self::expecting(DeErrorKind::Word(nearest), format!("one of `{}`", expected.join("`, `")))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let nearest = nearest(field, expected.iter().copied());
        Self::expecting(DeErrorKind::Property(nearest), format!("only the properties `{}`", expected.join("`, `")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::expecting(DeErrorKind::Count, format!("the property `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::expecting(DeErrorKind::Count, format!("the property `{field}` only once"))
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
