//! [`Writer`]: the rules that all decoders share for calls, text, ids and the end of a turn.

use std::borrow::Cow;

use crate::call::CallId;
use crate::wire::decode::turn::parts::Slot;
use crate::wire::decode::turn::{Call, Ending, Turn};
use crate::wire::{DisplayEvent, FinishReason, Usage, WireError, WireErrorKind};

/// A turn, and a callback that shows its display events.
pub(crate) struct Writer<'a> {
    pub(crate) turn: &'a mut Turn,
    pub(crate) show: &'a mut dyn FnMut(DisplayEvent<'_>),
}

impl Writer<'_> {
    pub(crate) fn usage(&mut self, usage: Usage) {
        self.turn.usage = Some(usage);
    }

    /// Keeps the first id and the first model that are not empty.
    pub(crate) fn response(&mut self, id: &str, model: &str) {
        for (slot, text) in [(&mut self.turn.response_id, id), (&mut self.turn.model, model)] {
            if slot.is_none() && !text.is_empty() {
                *slot = Some(text.to_owned());
            }
        }
    }

    /// Records that another model serves the rest of the response. The calls so far must not run.
    pub(crate) fn served_by(&mut self, model: &str) {
        if !model.is_empty() {
            self.turn.model = Some(model.to_owned());
        }
        self.turn.calls.iter_mut().for_each(|call| call.is_void = true);
    }

    /// Marks the second of two calls, so that it does not run, if both have the same name and arguments.
    pub(crate) fn drop_repeat(&mut self, first: usize, second: usize) {
        let of =
            |at: usize| self.turn.calls.get(at).map(|call| (&call.name, call.object.as_deref().unwrap_or(&call.text)));
        let is_repeat = of(first) == of(second);
        if let Some(call) = self.turn.calls.get_mut(second).filter(|_| is_repeat) {
            call.is_void = true;
        }
    }

    /// Starts a call; `None` if the turn has too many.
    pub(crate) fn start(&mut self, id: &str, name: &str) -> Option<usize> {
        let call = self.turn.calls.len();
        if call >= self.turn.max_calls {
            self.turn.fail(WireError::new(WireErrorKind::LimitExceeded));
            return None;
        }
        let frame = self.turn.frame;
        let part = self.turn.add(Slot::Call(call));
        self.turn.calls.push(Call { name: name.to_owned(), frame, part, ..Call::default() });
        self.offer_id(call, id);
        Some(call)
    }

    /// Sets the id of a call that has none yet (rule R2 of `wire`). An id that another call has is ignored (R4).
    pub(crate) fn offer_id(&mut self, at: usize, id: &str) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        if id.is_empty() || call.wire_id.is_some() {
            return;
        }
        call.wire_id = Some(id.to_owned());
        if call.id.is_none() && !self.turn.by_id.contains_key(id) {
            let id = CallId::new(id);
            self.turn.by_id.insert(id.clone(), at);
            call.id = Some(id);
        }
        self.announce(at);
    }

    /// Generates an id for a call without one.
    pub(crate) fn settle_id(&mut self, at: usize) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        // The generated id is not added to `by_id`, because the server does not know it.
        call.id.get_or_insert_with(CallId::generate);
    }

    pub(crate) fn append_name(&mut self, at: usize, name: &str) {
        if let Some(call) = self.turn.calls.get_mut(at) {
            call.name.push_str(name);
        }
    }

    pub(crate) fn append_text(&mut self, at: usize, text: &str) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        if text.is_empty() {
            return;
        }
        // Text after an object: the joined text does not parse, so the call does not run.
        if let Some(object) = call.object.take() {
            object.as_ref().clone_into(&mut call.text);
        }
        call.text.push_str(text);
        self.announce(at);
    }

    /// Sets the arguments to an object, unchanged (R7). The same object again is a repeat; a second object makes the
    /// arguments unreadable.
    pub(crate) fn object(&mut self, at: usize, object: &str) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        if call.text.is_empty() && call.object.as_deref().is_none_or(|seen| seen == object) {
            call.object = Some(object.into());
            self.announce(at);
        } else {
            self.append_text(at, object);
        }
    }

    /// Replaces the argument text with the text of a done event (S2); empty text changes nothing.
    pub(crate) fn replace_text(&mut self, at: usize, text: &str) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        if text.is_empty() || call.text == text {
            return;
        }
        call.object = None;
        text.clone_into(&mut call.text);
        self.announce(at);
    }

    /// Shows the start of a call once its id and name are final, and argument text that was not shown yet.
    fn announce(&mut self, at: usize) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        let text = call.object.as_deref().unwrap_or(&call.text);
        let (Some(id), false, false) = (&call.id, call.name.is_empty(), text.is_empty()) else { return };
        show_start(&mut call.announced, id, &call.name, self.show);
        if let Some(rest) = text.get(call.shown..).filter(|rest| !rest.is_empty()) {
            (self.show)(DisplayEvent::ArgumentsDelta { id: id.clone(), text: Cow::Borrowed(rest) });
            call.shown = text.len();
        }
    }

    /// At the end of the turn, shows the calls that were held back because they had no id or no argument text.
    fn announce_all(&mut self) {
        for at in 0..self.turn.calls.len() {
            // The text of an announced call was already shown.
            if self.turn.calls.get(at).is_some_and(|call| call.announced) {
                continue;
            }
            self.settle_id(at);
            self.announce(at);
            if let Some(call) = self.turn.calls.get_mut(at)
                && let (Some(id), false) = (&call.id, call.name.is_empty())
            {
                show_start(&mut call.announced, id, &call.name, self.show);
            }
        }
    }

    pub(crate) fn provider_finish(&mut self, word: &str) {
        self.turn.provider_finish = Some(word.to_owned());
    }

    /// Marks the turn as ended well, unless it was cut off before (R5).
    pub(crate) fn end_well(&mut self) {
        if self.turn.ending == Ending::Open {
            self.turn.ending = Ending::Well;
        }
        self.announce_all();
    }

    /// Marks the turn as cut off; a later end does not change that (R10).
    pub(crate) fn end_cut(&mut self, finish: FinishReason) {
        if !matches!(self.turn.ending, Ending::Cut(_)) {
            self.turn.ending = Ending::Cut(finish);
        }
        self.announce_all();
    }

    /// Reopens the turn: a call continues after the end, so the turn needs another end.
    pub(crate) fn reopen(&mut self) {
        if self.turn.ending == Ending::Well {
            self.turn.ending = Ending::Open;
        }
    }

    /// Ignores all further input.
    pub(crate) fn close(&mut self) {
        self.turn.closed = true;
    }

    pub(crate) fn fail(&mut self, error: WireError) {
        self.turn.fail(error);
    }

    pub(crate) fn fail_with(&mut self, kind: WireErrorKind) {
        self.turn.fail(WireError::new(kind));
    }
}

fn show_start(announced: &mut bool, id: &CallId, name: &str, show: &mut dyn FnMut(DisplayEvent<'_>)) {
    if !*announced {
        *announced = true;
        show(DisplayEvent::CallStarted { id: id.clone(), name: Cow::Borrowed(name) });
    }
}
