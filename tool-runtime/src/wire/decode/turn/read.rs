//! Queries that decoders make about the turn that they write.

use crate::wire::decode::turn::Writer;

impl Writer<'_> {
    pub(crate) fn call_by_id(&self, id: &str) -> Option<usize> {
        self.turn.by_id.get(id).copied()
    }

    pub(crate) fn name(&self, call: usize) -> &str {
        self.turn.calls.get(call).map_or("", |call| &call.name)
    }

    /// The argument text of a call so far.
    pub(crate) fn argument_text(&self, call: usize) -> &str {
        self.turn.calls.get(call).map_or("", |call| &call.text)
    }

    /// Whether the arguments of a call came as an object, which is always complete.
    pub(crate) fn has_object(&self, call: usize) -> bool {
        self.turn.calls.get(call).is_some_and(|call| call.object.is_some())
    }

    /// The id that the server gave to a call.
    pub(crate) fn wire_id(&self, call: usize) -> &str {
        self.turn.calls.get(call).and_then(|call| call.wire_id.as_deref()).unwrap_or_default()
    }

    pub(crate) fn has_arguments(&self, call: usize) -> bool {
        self.turn.calls.get(call).is_some_and(|call| !call.text.is_empty() || call.object.is_some())
    }

    pub(crate) const fn has_calls(&self) -> bool {
        !self.turn.calls.is_empty()
    }

    pub(crate) const fn has_refusal(&self) -> bool {
        !self.turn.refusal.is_empty()
    }

    /// Whether a part is the last one.
    pub(crate) const fn is_last(&self, part: usize) -> bool {
        self.turn.layout.is_last(part)
    }

    /// The indices of the text parts after the first.
    pub(crate) fn later_texts(&self) -> Vec<usize> {
        self.turn.layout.texts().skip(1).collect()
    }
}
