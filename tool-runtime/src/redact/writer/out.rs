//! [`Out`]: the text that a writer makes, and the counts of omissions that cannot fit.

use crate::json::quote;
use crate::redact::fit::Unwritten;
use crate::text::cut;

/// The text written.
pub(in crate::redact) struct Out {
    pub(in crate::redact) text: String,
    most: usize,
    pub(super) unwritten: Vec<Unwritten>,
}

impl Out {
    pub(super) const fn new(text: String, most: usize) -> Self {
        Self { text, most, unwritten: Vec::new() }
    }

    /// Whether the array or map that begins here has as much as can fit: twice the limit, because cutting one long text
    /// makes room for the items after it.
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

    /// Counts the omitted part of the array, map or text that begins here.
    #[cold]
    pub(super) fn leave_out(&mut self, start: usize, missing: usize) {
        self.unwritten.push((start, missing));
    }

    pub(super) fn string(&mut self, value: &str) {
        if value.len() <= self.most { quote(&mut self.text, value) } else { self.part(value) }
    }

    /// Writes as much of a string as can fit.
    #[cold]
    fn part(&mut self, value: &str) {
        let kept = cut(value, self.most);
        self.leave_out(self.text.len(), value.len() - kept.len());
        quote(&mut self.text, kept);
    }
}
