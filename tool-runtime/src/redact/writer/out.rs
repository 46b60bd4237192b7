//! [`Out`]: the text of a writer, and the parts that it left out because they cannot fit.

use crate::json::quote;
use crate::redact::fit::Unwritten;
use crate::text::cut;

/// The output of a writer.
pub(in crate::redact) struct Out {
    pub(in crate::redact) text: String,
    most: usize,
    pub(super) unwritten: Vec<Unwritten>,
}

impl Out {
    pub(super) const fn new(text: String, most: usize) -> Self {
        Self { text, most, unwritten: Vec::new() }
    }

    /// Whether the array or map that begins here is longer than twice the limit. Up to that size, later items may still
    /// fit, because a cut of a long string makes room for them.
    #[inline]
    pub(super) fn is_full(&self, start: usize) -> bool {
        self.text.len() - start > self.most.saturating_mul(2)
    }

    /// Removes the text from this position on.
    #[inline]
    pub(super) fn truncate(&mut self, at: usize) {
        self.text.truncate(at);
        if !self.unwritten.is_empty() {
            self.unwritten.retain(|(start, _)| *start < at);
        }
    }

    /// Records the omitted part of the array, map or string that begins at `start`.
    #[cold]
    pub(super) fn leave_out(&mut self, start: usize, missing: usize) {
        self.unwritten.push((start, missing));
    }

    pub(super) fn string(&mut self, value: &str) {
        if value.len() <= self.most { quote(&mut self.text, value) } else { self.part(value) }
    }

    /// Writes the beginning of a string that cannot fit.
    #[cold]
    fn part(&mut self, value: &str) {
        let kept = cut(value, self.most);
        self.leave_out(self.text.len(), value.len() - kept.len());
        quote(&mut self.text, kept);
    }
}
