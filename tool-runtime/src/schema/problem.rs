//! [`Pointer`]: the current place in a schema, for the problems that are found there.

use crate::error::Problem;
use crate::text::pointer;

/// A JSON Pointer that grows and shrinks while a schema is visited.
#[derive(Debug, Default)]
pub(crate) struct Pointer(String);

impl Pointer {
    /// Enters a member, and returns the mark for [`leave`](Self::leave).
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

    /// Creates a problem at this place.
    pub(crate) fn problem(&self, message: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem::schema(self.0.clone(), message, remedy)
    }
}
