//! [`SchemaProblem`]: a problem of a schema, its place, and what to write instead.

use std::fmt;

use crate::text::pointer;

/// One problem of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaProblem {
    /// JSON Pointer (RFC 6901) into the schema, references followed as if inlined; the empty text is the root.
    pub pointer: String,
    /// The problem.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
    /// The kind, for the review of an untrusted definition.
    pub(crate) kind: SchemaProblemKind,
}

/// The kind of a problem, for a whole document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SchemaProblemKind {
    /// Its content is wrong.
    #[default]
    Content,
    /// It is too large.
    Size,
    /// It nests too deeply, or expands too far.
    Depth,
    /// A reference leads outside or in a circle.
    Reference,
}

impl SchemaProblem {
    /// A problem at `pointer`.
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            remedy: remedy.into(),
            kind: SchemaProblemKind::Content,
        }
    }

    pub(crate) fn of_kind(mut self, kind: SchemaProblemKind) -> Self {
        self.kind = kind;
        self
    }
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "the root" } else { &self.pointer };
        write!(f, "at {place}: {}; {}", self.message, self.remedy)
    }
}

impl std::error::Error for SchemaProblem {}

/// A JSON Pointer that grows and shrinks while a schema is walked.
#[derive(Debug, Default)]
pub(crate) struct Pointer(String);

impl Pointer {
    /// Enters a member and returns where to go back to.
    pub(crate) fn enter(&mut self, segment: &str) -> usize {
        let mark = self.0.len();
        pointer::push(&mut self.0, segment);
        mark
    }

    /// Goes back to a mark of [`enter`](Self::enter).
    pub(crate) fn leave(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A problem here.
    pub(crate) fn problem(&self, message: impl Into<String>, remedy: impl Into<String>) -> SchemaProblem {
        SchemaProblem::new(self.0.clone(), message, remedy)
    }
}
