//! Adds the parts of a turn: text, reasoning, media, sources and provider state.

use std::borrow::Cow;

use crate::wire::decode::turn::parts::Slot;
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::history::{Citation, Media, ProviderState};
use crate::wire::{DisplayEvent, WireErrorKind};

/// The maximum number of bytes and parts that replacements of texts may move in one turn. A provider replaces each text
/// once or twice, and each replacement moves the texts after it.
const MAX_MOVED: usize = 256 << 20;

impl Writer<'_> {
    /// Adds text to the last part if it is a text, otherwise to a new part.
    pub(crate) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.turn.text.push_str(text);
        let end = self.turn.text.len();
        match self.turn.layout.last_mut() {
            Some(Slot::Text(to)) => *to = end,
            _ => {
                self.turn.add(Slot::Text(end));
            }
        }
        (self.show)(DisplayEvent::Text(Cow::Borrowed(text)));
    }

    /// Starts a text part and returns its index. [`text`](Self::text) adds to it until another part begins.
    pub(crate) fn start_text(&mut self) -> usize {
        let end = self.turn.text.len();
        self.turn.add(Slot::Text(end))
    }

    /// Adds text to a text part, or to a new one if the part is no longer the last. Returns the index of the part.
    pub(crate) fn text_at(&mut self, part: Option<usize>, text: &str) -> usize {
        let part = part.filter(|part| self.is_last(*part)).unwrap_or_else(|| self.start_text());
        self.text(text);
        part
    }

    /// Replaces the text of a part with the text of a done event (rule S2 of `wire`), which contains all of its deltas.
    /// Display events that were sent for the earlier text are not withdrawn.
    pub(crate) fn replace_text_at(&mut self, part: usize, text: &str) {
        self.turn.moved += self.turn.layout.replace_text(part, text, &mut self.turn.text);
        if self.turn.moved > MAX_MOVED {
            self.fail_with(WireErrorKind::LimitExceeded);
        }
    }

    /// Adds reasoning that users may see to the last part if it is reasoning, otherwise to a new part, whose index it
    /// returns. `None` if no part was started.
    pub(crate) fn reasoning(&mut self, text: &str) -> Option<usize> {
        if text.is_empty() {
            return None;
        }
        let started = match self.turn.layout.last_mut() {
            Some(Slot::Reasoning(before)) => {
                before.push_str(text);
                None
            }
            _ => Some(self.turn.add(Slot::Reasoning(text.to_owned()))),
        };
        (self.show)(DisplayEvent::Reasoning(Cow::Borrowed(text)));
        started
    }

    /// Starts a reasoning part and returns its index.
    pub(crate) fn start_reasoning(&mut self) -> usize {
        self.turn.add(Slot::Reasoning(String::new()))
    }

    /// Adds reasoning that users may see to a part.
    pub(crate) fn reasoning_at(&mut self, part: usize, text: &str) {
        if let Some(Slot::Reasoning(before)) = self.turn.layout.get_mut(part)
            && !text.is_empty()
        {
            before.push_str(text);
            (self.show)(DisplayEvent::Reasoning(Cow::Borrowed(text)));
        }
    }

    /// Adds reasoning that users may see to a part that has none yet.
    pub(crate) fn reasoning_once(&mut self, part: usize, text: &str) {
        if let Some(Slot::Reasoning(before)) = self.turn.layout.get_mut(part)
            && before.is_empty()
        {
            self.reasoning_at(part, text);
        }
    }

    pub(crate) fn refusal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.turn.refusal.is_empty() {
            self.turn.add(Slot::Refusal);
        }
        self.turn.refusal.push_str(text);
    }

    /// Adds media that the model made.
    pub(crate) fn media(&mut self, media: Media) -> usize {
        self.turn.add(Slot::Media(Box::new(media)))
    }

    /// Adds a source for the text before it.
    pub(crate) fn citation(&mut self, citation: Citation) {
        self.turn.add(Slot::Citation(Box::new(citation)));
    }

    /// Adds a block that only its provider understands; `json` is one object.
    pub(crate) fn provider_state(&mut self, json: String, bound: BoundTo) {
        let part = self.start_carried();
        self.bind(part, json, bound);
    }

    /// Starts a block that only its provider understands. A block that gets no JSON is left out.
    pub(crate) fn start_carried(&mut self) -> usize {
        self.turn.add(Slot::ProviderState)
    }

    /// Sets the provider state of a part: one JSON object in the shape that the format's encoder expects.
    pub(crate) fn bind(&mut self, part: usize, json: String, bound: BoundTo) {
        if self.turn.layout.bind(part, ProviderState::read(self.turn.format, json), bound)
            > self.turn.max_provider_state_bytes
        {
            self.fail_with(WireErrorKind::LimitExceeded);
        }
    }

    /// Sets the provider state of a call.
    pub(crate) fn bind_call(&mut self, call: usize, json: String, bound: BoundTo) {
        if let Some(part) = self.turn.calls.get(call).map(|call| call.part) {
            self.bind(part, json, bound);
        }
    }
}
