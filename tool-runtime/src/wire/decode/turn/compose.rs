//! The parts of a turn as decoders write them: text, reasoning, media, sources and provider state.

use std::borrow::Cow;

use crate::wire::decode::turn::parts::Slot;
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::history::{Citation, Media, ProviderState};
use crate::wire::{DisplayEvent, WireErrorKind};

/// The maximum number of bytes and parts that replacements of texts may move in one turn. A provider replaces each text
/// once or twice, and the texts after it move.
const MAX_MOVED: usize = 256 << 20;

impl Writer<'_> {
    /// Adds text to the last part if that is text, and starts a part otherwise.
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

    /// Starts a part of text, to which [`text`](Self::text) adds until another part begins, and returns it.
    pub(crate) fn start_text(&mut self) -> usize {
        let end = self.turn.text.len();
        self.turn.add(Slot::Text(end))
    }

    /// Adds text to a part of text, or starts another if it is no longer the last. Returns the part.
    pub(crate) fn text_at(&mut self, part: Option<usize>, text: &str) -> usize {
        let part = part.filter(|part| self.is_last(*part)).unwrap_or_else(|| self.start_text());
        self.text(text);
        part
    }

    /// Replaces the text of a part by that of an authoritative event (S2). Text that was shown stays shown.
    pub(crate) fn replace_text_at(&mut self, part: usize, text: &str) {
        self.turn.moved += self.turn.layout.replace_text(part, text, &mut self.turn.text);
        if self.turn.moved > MAX_MOVED {
            self.fail_with(WireErrorKind::LimitExceeded);
        }
    }

    /// Adds reasoning that the provider shows to the last part if that is reasoning. Otherwise starts a part and
    /// returns it.
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

    /// Starts a part of reasoning and returns it.
    pub(crate) fn start_reasoning(&mut self) -> usize {
        self.turn.add(Slot::Reasoning(String::new()))
    }

    /// Adds reasoning that the provider shows to a part.
    pub(crate) fn reasoning_at(&mut self, part: usize, text: &str) {
        if let Some(Slot::Reasoning(before)) = self.turn.layout.get_mut(part)
            && !text.is_empty()
        {
            before.push_str(text);
            (self.show)(DisplayEvent::Reasoning(Cow::Borrowed(text)));
        }
    }

    /// Adds reasoning to a part that has none yet.
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

    /// Adds a source of the text before it.
    pub(crate) fn citation(&mut self, citation: Citation) {
        self.turn.add(Slot::Citation(Box::new(citation)));
    }

    /// Adds a block that only its provider understands, as a JSON object.
    pub(crate) fn provider_state(&mut self, json: String, bound: BoundTo) {
        let part = self.start_carried();
        self.bind(part, json, bound);
    }

    /// Starts a block that only its provider understands; without JSON it is left out.
    pub(crate) fn start_carried(&mut self) -> usize {
        self.turn.add(Slot::ProviderState)
    }

    /// Sets the data that the provider wants back with a part, as a JSON object in the shape that the format's encoder
    /// expects.
    pub(crate) fn bind(&mut self, part: usize, json: String, bound: BoundTo) {
        if self.turn.layout.bind(part, ProviderState::read(self.turn.format, json), bound)
            > self.turn.max_provider_state_bytes
        {
            self.fail_with(WireErrorKind::LimitExceeded);
        }
    }

    /// Sets the data that the provider wants back with a call.
    pub(crate) fn bind_call(&mut self, call: usize, json: String, bound: BoundTo) {
        if let Some(part) = self.turn.calls.get(call).map(|call| call.part) {
            self.bind(part, json, bound);
        }
    }
}
