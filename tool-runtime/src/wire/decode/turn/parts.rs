//! [`Layout`]: the parts of a turn, in the order in which they began.

use crate::wire::history::{CallMessage, Citation, Media, Part, ProviderState};

/// The maximum number of parts of one turn; no model writes more.
pub(super) const MAX_PARTS: usize = 8192;

/// The parts of a turn, in the order in which they began. The turn itself holds the texts, calls and refusal.
#[derive(Clone, Default)]
pub(crate) struct Layout {
    parts: Vec<(Slot, Option<(ProviderState, BoundTo)>)>,
    carried_bytes: usize,
}

/// The requests that may contain the provider state of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundTo {
    /// Requests of the same format to the model that produced it, for example signed or encrypted reasoning.
    Model,
    /// Requests of the same format to any model, for example results of a server tool and their citations.
    Format,
}

/// One part.
#[derive(Clone)]
pub(super) enum Slot {
    /// Text of the turn: from the end of the previous text part up to this byte.
    Text(usize),
    Reasoning(String),
    /// The index of a call.
    Call(usize),
    // Boxed, because few turns have one and adding a part moves it.
    Media(Box<Media>),
    Citation(Box<Citation>),
    Refusal,
    ProviderState,
}

impl Layout {
    pub(super) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Keeps calls, the refusal, and text up to this byte. Returns the number of bytes of other parts removed.
    pub(super) fn keep_beginning(&mut self, text: usize) -> usize {
        let mut gone = std::mem::take(&mut self.carried_bytes);
        self.parts.retain_mut(|(slot, provider_state)| {
            *provider_state = None;
            match slot {
                Slot::Text(to) => {
                    *to = text.min(*to);
                    true
                }
                Slot::Call(_) | Slot::Refusal => true,
                Slot::Reasoning(thoughts) => {
                    gone += thoughts.len();
                    false
                }
                Slot::Media(_) | Slot::Citation(_) | Slot::ProviderState => false,
            }
        });
        gone
    }

    /// The layout of parts that did not come from a decoder.
    pub(crate) fn given(parts: &[Part]) -> Self {
        let (mut layout, mut text, mut calls) = (Self::default(), 0, 0);
        for part in parts {
            let slot = match part {
                Part::Text { text: part, .. } => {
                    text += part.len();
                    Slot::Text(text)
                }
                Part::Reasoning { text, .. } => Slot::Reasoning(text.clone()),
                Part::Call(_) => {
                    calls += 1;
                    Slot::Call(calls - 1)
                }
                Part::Media(media) => Slot::Media(Box::new(media.clone())),
                Part::Citation(citation) => Slot::Citation(Box::new(citation.clone())),
                // The turn joins all refusals to one text.
                Part::Refusal(_) if layout.has_refusal() => continue,
                Part::Refusal(_) => Slot::Refusal,
                Part::ProviderState(_) => Slot::ProviderState,
            };
            layout
                .parts
                .push((slot, part.provider_state().map(|provider_state| (provider_state.clone(), BoundTo::Model))));
        }
        layout
    }

    /// Adds a part and returns its index. The index [`MAX_PARTS`] means that the part was left out.
    pub(super) fn add(&mut self, slot: Slot) -> usize {
        let at = self.parts.len();
        if at < MAX_PARTS {
            self.parts.push((slot, None));
        }
        at
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Slot> {
        self.parts.last_mut().map(|(slot, _)| slot)
    }

    pub(super) fn get_mut(&mut self, part: usize) -> Option<&mut Slot> {
        self.parts.get_mut(part).map(|(slot, _)| slot)
    }

    /// The indices of the text parts.
    pub(super) fn texts(&self) -> impl Iterator<Item = usize> {
        let texts = self.parts.iter().enumerate().filter(|(_, (slot, _))| matches!(slot, Slot::Text(_)));
        texts.map(|(at, _)| at)
    }

    pub(super) const fn is_last(&self, part: usize) -> bool {
        // `usize::MAX` stands for a part that is not in the layout, so `part + 1` could overflow.
        self.parts.len() > part && self.parts.len() - part == 1
    }

    /// Replaces the text of a part. Returns the work in bytes and parts, which the caller limits.
    pub(super) fn replace_text(&mut self, part: usize, new: &str, text: &mut String) -> usize {
        let ends = |(slot, _): &(Slot, _)| if let Slot::Text(to) = slot { Some(*to) } else { None };
        let Some(to) = self.parts.get(part).and_then(ends) else { return 0 };
        let before = self.parts.iter().take(part).rposition(|part| ends(part).is_some());
        let from = before.and_then(|before| self.parts.get(before).and_then(ends)).unwrap_or(0);
        let passed = part - before.unwrap_or(0);
        if text.get(from..to).is_none_or(|before| before == new) {
            return passed;
        }
        let moved = text.len() - to;
        text.replace_range(from..to, new);
        // The ends of this text and of later ones move by the difference in length.
        for (slot, _) in self.parts.iter_mut().skip(part) {
            if let Slot::Text(end) = slot {
                *end = *end - (to - from) + new.len();
            }
        }
        passed + moved + (self.parts.len() - part)
    }

    fn has_refusal(&self) -> bool {
        self.parts.iter().any(|(slot, _)| matches!(slot, Slot::Refusal))
    }

    /// Gives each call a new index; `None` removes it.
    pub(super) fn move_calls(&mut self, to: impl Fn(usize) -> Option<usize>) {
        self.parts.retain_mut(|(slot, _)| match slot {
            Slot::Call(at) => match to(*at) {
                Some(new) => {
                    *at = new;
                    true
                }
                None => false,
            },
            _ => true,
        });
    }

    /// The provider state of the calls, each with the index of its call.
    pub(super) fn of_calls(&self) -> impl Iterator<Item = (usize, &ProviderState)> {
        self.parts.iter().filter_map(|(slot, provider_state)| match (slot, provider_state) {
            (Slot::Call(at), Some((provider_state, _))) => Some((*at, provider_state)),
            _ => None,
        })
    }

    /// Sets the provider state of a part and returns the total number of bytes of all provider state.
    pub(super) fn bind(&mut self, part: usize, new: ProviderState, bound: BoundTo) -> usize {
        if let Some((_, provider_state)) = self.parts.get_mut(part) {
            self.carried_bytes += new.json().len();
            self.carried_bytes -= provider_state.replace((new, bound)).map_or(0, |(before, _)| before.json().len());
        }
        self.carried_bytes
    }

    /// Sets the model of all provider state that is bound to its model. The model is known only when the turn has
    /// ended.
    pub(super) fn of_model(mut self, model: Option<&str>) -> Self {
        for (provider_state, bound) in self.parts.iter_mut().filter_map(|(_, provider_state)| provider_state.as_mut()) {
            if *bound == BoundTo::Model {
                provider_state.set_model(model);
            }
        }
        self
    }

    /// The parts, built from the text, the calls and the refusal of the turn.
    pub(crate) fn parts(&self, text: &str, calls: impl Fn(usize) -> Option<CallMessage>, refusal: &str) -> Vec<Part> {
        let mut from = 0;
        let mut parts = Vec::with_capacity(self.parts.len());
        for (slot, provider_state) in &self.parts {
            let provider_state = provider_state.as_ref().map(|(provider_state, _)| provider_state.clone());
            parts.extend(match slot {
                Slot::Text(to) => {
                    let part = text.get(from..*to).unwrap_or_default();
                    from = *to;
                    let kept = !part.is_empty() || provider_state.is_some();
                    kept.then(|| Part::Text { text: part.to_owned(), provider_state })
                }
                Slot::Reasoning(text) => {
                    let kept = !text.is_empty() || provider_state.is_some();
                    kept.then(|| Part::Reasoning { text: text.clone(), provider_state })
                }
                Slot::Call(at) => calls(*at).map(|call| Part::Call(call.with_provider_state(provider_state))),
                Slot::Media(media) => Some(Part::Media((**media).clone())),
                Slot::Citation(citation) => Some(Part::Citation((**citation).clone())),
                Slot::Refusal => (!refusal.is_empty()).then(|| Part::Refusal(refusal.to_owned())),
                Slot::ProviderState => provider_state.map(Part::ProviderState),
            });
        }
        parts
    }
}
