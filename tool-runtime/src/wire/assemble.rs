//! Rules that all decoders share: how calls, text, ids and the end of a turn are put together.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;

use crate::call::{Arguments, CallId, IdSource, Origin, ToolCall};
use crate::wire::decoded::object_text;
use crate::wire::{
    CallStatus, DecodeOptions, Decoded, DecodedCall, DisplayEvent, Finish, ToolChoice, Usage, WireError, WireErrorKind,
};

/// One response while it is being read. Append only; each byte of a delta is copied once.
#[derive(Default)]
pub(crate) struct Turn {
    calls: Vec<Call>,
    by_id: HashMap<Box<str>, usize>,
    text: String,
    refusal: String,
    ending: Ending,
    provider_finish: Option<String>,
    error: Option<WireError>,
    usage: Option<Usage>,
    response_id: Option<String>,
    model: Option<String>,
    closed: bool,
    max_calls: usize,
    /// The frame being read, from 0.
    pub(crate) frame: usize,
}

#[derive(Default)]
struct Call {
    id: Option<CallId>,
    wire_id: Option<String>,
    name: String,
    text: String,
    object: Option<String>,
    frame: usize,
    announced: bool,
    shown: usize,
}

/// What is known about the end of the turn.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Ending {
    #[default]
    Open,
    Well,
    Cut(Finish),
}

impl Turn {
    pub(crate) fn new(max_calls: usize) -> Self {
        Self { max_calls, ..Self::default() }
    }

    /// Nothing that comes now is read: the end mark was seen, or the turn failed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn fail(&mut self, error: WireError) {
        // The first failure is the cause; later ones follow from it.
        self.error.get_or_insert(error);
        self.closed = true;
    }

    /// The result. R10: nothing is executable unless the turn ended well.
    pub(crate) fn finish(mut self, provider: &'static str, options: &DecodeOptions) -> Decoded {
        if self.error.is_none() && self.ending == Ending::Open {
            self.error = Some(WireError::new(WireErrorKind::TruncatedStream));
        }
        let clean = self.error.is_none() && self.ending == Ending::Well;
        let finish = match (&self.error, self.ending) {
            (Some(error), _) if error.kind == WireErrorKind::TruncatedStream => Finish::Truncated,
            (Some(_), _) | (None, Ending::Open) => Finish::Error,
            (None, Ending::Cut(finish)) => finish,
            // R5: calls decide, not the word.
            (None, Ending::Well) if !self.calls.is_empty() => Finish::ToolCalls,
            (None, Ending::Well) if !self.refusal.is_empty() => Finish::Refusal,
            (None, Ending::Well) => Finish::Stop,
        };
        let response_id = self.response_id;
        let origin = |call: &mut Call| Origin {
            provider: Some(provider),
            provider_call_id: call.wire_id.take(),
            response_id: response_id.clone(),
            frame: Some(call.frame),
        };
        let calls = self
            .calls
            .into_iter()
            .map(|mut call| {
                let origin = origin(&mut call);
                call.finish(clean, origin, options)
            })
            .collect();
        Decoded {
            calls,
            text: self.text,
            finish,
            provider_finish: self.provider_finish,
            error: self.error,
            refusal: (!self.refusal.is_empty()).then_some(self.refusal),
            usage: self.usage,
            response_id,
            model: self.model,
        }
    }
}

impl Call {
    fn finish(self, clean: bool, origin: Origin, options: &DecodeOptions) -> DecodedCall {
        let status = self.status(clean);
        let id_source = if self.wire_id_is_used(&origin) { IdSource::Provider } else { IdSource::Generated };
        let arguments = self.object.map_or_else(|| Arguments::Text(self.text), Arguments::Object);
        let mut call = ToolCall::new(self.id.unwrap_or_else(CallId::generate), self.name, arguments);
        call.id_source = id_source;
        call.complete = clean;
        call.outside_choice = match &options.choice {
            ToolChoice::Auto | ToolChoice::Required => false,
            ToolChoice::None => true,
            ToolChoice::Named(name) => *name != call.name,
        };
        call.origin = origin;
        let offered = options.offered.as_ref().is_none_or(|offered| offered.contains(&call.name));
        DecodedCall { executable: clean && status == CallStatus::Ok, call, status, offered }
    }

    fn wire_id_is_used(&self, origin: &Origin) -> bool {
        match (&self.id, &origin.provider_call_id) {
            (Some(id), Some(wire)) => id.as_str() == wire,
            _ => false,
        }
    }

    /// R8: one JSON object or nothing; no repair.
    fn status(&self, clean: bool) -> CallStatus {
        if self.name.is_empty() {
            return CallStatus::MissingName;
        }
        if self.object.is_some() {
            return CallStatus::Ok;
        }
        let text = object_text(&self.text);
        // Only the syntax is looked at, without recursion; values are read once, when the call is hydrated.
        match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) if text.starts_with('{') => CallStatus::Ok,
            Ok(_) => CallStatus::ArgumentsNotObject,
            Err(_) if clean => CallStatus::InvalidJson,
            Err(_) => CallStatus::TruncatedArguments,
        }
    }
}

/// A turn together with who watches it.
pub(crate) struct Writer<'a> {
    pub(crate) turn: &'a mut Turn,
    pub(crate) show: &'a mut dyn FnMut(DisplayEvent<'_>),
}

impl Writer<'_> {
    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.turn.text.push_str(text);
            (self.show)(DisplayEvent::Text(Cow::Borrowed(text)));
        }
    }

    pub(crate) fn refusal(&mut self, text: &str) {
        self.turn.refusal.push_str(text);
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.turn.usage = Some(usage);
    }

    /// The first id and model that are not empty stay.
    pub(crate) fn response(&mut self, id: &str, model: &str) {
        for (slot, text) in [(&mut self.turn.response_id, id), (&mut self.turn.model, model)] {
            if slot.is_none() && !text.is_empty() {
                *slot = Some(text.to_owned());
            }
        }
    }

    /// A new call; nothing when there are too many.
    pub(crate) fn start(&mut self, id: &str, name: &str) -> Option<usize> {
        let call = self.turn.calls.len();
        if call >= self.turn.max_calls {
            self.turn.fail(WireError::new(WireErrorKind::LimitExceeded));
            return None;
        }
        let frame = self.turn.frame;
        self.turn.calls.push(Call { name: name.to_owned(), frame, ..Call::default() });
        self.offer_id(call, id);
        Some(call)
    }

    pub(crate) fn call_by_id(&self, id: &str) -> Option<usize> {
        self.turn.by_id.get(id).copied()
    }

    pub(crate) fn name(&self, call: usize) -> &str {
        self.turn.calls.get(call).map_or("", |call| &call.name)
    }

    pub(crate) fn has_arguments(&self, call: usize) -> bool {
        self.turn.calls.get(call).is_some_and(|call| !call.text.is_empty() || call.object.is_some())
    }

    /// R2, R4: the first id of a call stays, and an id that another call has is none.
    pub(crate) fn offer_id(&mut self, at: usize, id: &str) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        if id.is_empty() || call.wire_id.is_some() {
            return;
        }
        call.wire_id = Some(id.to_owned());
        if call.id.is_none() && !self.turn.by_id.contains_key(id) {
            call.id = Some(CallId::new(id));
            self.turn.by_id.insert(id.into(), at);
        }
        self.announce(at);
    }

    /// Gives the call an id of our own if it has none; for formats that never send one.
    pub(crate) fn settle_id(&mut self, at: usize) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        if call.id.is_none() {
            let id = CallId::generate();
            self.turn.by_id.insert(id.as_str().into(), at);
            call.id = Some(id);
        }
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
        // Text after an object is neither; joined it does not parse, so the call does not run.
        if let Some(object) = call.object.take() {
            call.text = object;
        }
        call.text.push_str(text);
        self.announce(at);
    }

    /// R7: an object as it came. The same one again is a repeat; another one makes both unreadable.
    pub(crate) fn object(&mut self, at: usize, object: &str) {
        let Some(call) = self.turn.calls.get_mut(at) else { return };
        if call.text.is_empty() && call.object.as_deref().is_none_or(|seen| seen == object) {
            call.object = Some(object.to_owned());
            self.announce(at);
        } else {
            self.append_text(at, object);
        }
    }

    /// Shows the start of a call once its id and name are final, and the argument text that was not shown yet.
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

    /// Shows what was held back, at the end of the turn: calls without id or without argument text.
    fn announce_all(&mut self) {
        for at in 0..self.turn.calls.len() {
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

    /// R5: the turn ended well, unless something cut it before.
    pub(crate) fn end_well(&mut self) {
        if self.turn.ending == Ending::Open {
            self.turn.ending = Ending::Well;
        }
        self.announce_all();
    }

    /// R10: the turn was cut; no later word makes it good again.
    pub(crate) fn end_cut(&mut self, finish: Finish) {
        if !matches!(self.turn.ending, Ending::Cut(_)) {
            self.turn.ending = Ending::Cut(finish);
        }
        self.announce_all();
    }

    /// A call goes on after the end: the turn needs another end.
    pub(crate) fn reopen(&mut self) {
        if self.turn.ending == Ending::Well {
            self.turn.ending = Ending::Open;
        }
    }

    /// Whatever follows is ignored.
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
