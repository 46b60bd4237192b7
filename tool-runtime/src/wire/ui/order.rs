//! [`Order`]: events in any order in, frames in a valid order out (rules U1 to U6).
//!
//! It forgets a call when the call ends. Of each id eight bytes stay for the length of the message, because the
//! packages refuse an id that comes twice.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::call::Outcome;
use crate::wire::ui::call::{Call, Wait, failure};
use crate::wire::ui::frame::{Frame, Part, TOOL_CALLS, reason_word};
use crate::wire::ui::keys;
use crate::wire::ui::{Protocol, UiEvent};

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Order {
    protocol: Protocol,
    message: Option<String>,
    text: Option<Part>,
    texts: usize,
    parts: usize,
    calls: Vec<Call>,
    used: HashSet<u64>,
    hasher: RandomState,
    /// Events of calls that wait until the argument text of another one is complete.
    held: Vec<UiEvent>,
    in_step: bool,
    over: bool,
    out: Vec<u8>,
}

impl Order {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            message: None,
            text: None,
            texts: 0,
            parts: 0,
            calls: Vec::new(),
            used: HashSet::new(),
            hasher: RandomState::new(),
            held: Vec::new(),
            in_step: false,
            over: false,
            out: Vec::new(),
        }
    }

    /// The bytes so far, which are forgotten here.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Writes the end frame.
    pub(super) fn end(&mut self) {
        self.write(&Frame::End);
    }

    /// The call came, or did once.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.used.contains(&self.hasher.hash_one(id))
    }

    /// The call is open.
    pub(super) fn call(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.part.id == id)
    }

    pub(super) fn push(&mut self, event: &UiEvent) {
        if self.over {
            return;
        }
        if self.must_wait(event) {
            self.held.push(event.clone());
            return;
        }
        self.apply(event);
        if self.front().is_none() {
            self.release();
        }
    }

    /// Shows a person something that is no part of the message.
    pub(super) fn status(&mut self, text: &str) {
        if !self.over {
            self.begin(None);
            self.write(&Frame::Status { text });
        }
    }

    fn write(&mut self, frame: &Frame<'_>) {
        self.protocol.write(frame, &mut self.out);
    }

    /// The call whose argument text other ones may not interrupt (U6).
    fn front(&self) -> Option<&Call> {
        self.calls.iter().find(|call| self.protocol == Protocol::DataStream && !call.is_closed())
    }

    fn must_wait(&mut self, event: &UiEvent) -> bool {
        let (Some(id), Some(front)) = (event.call(), self.front()) else { return false };
        if front.part.id == id {
            return false;
        }
        if front.is_complete() {
            let front = front.part.id.clone();
            self.close(&front);
            return self.must_wait(event);
        }
        true
    }

    fn release(&mut self) {
        for event in std::mem::take(&mut self.held) {
            self.push(&event);
        }
    }

    fn apply(&mut self, event: &UiEvent) {
        match event {
            UiEvent::MessageStart { id } => self.begin(Some(id)),
            UiEvent::StepStart { id } => {
                self.finish_step("other", [0, 0], false);
                self.begin(Some(id));
                self.in_step = true;
                self.write(&Frame::StepStart { id });
            }
            UiEvent::TextDelta { text } => self.add_text(text),
            UiEvent::ToolStart { id, name, parent_id } => self.start(id, name, parent_id.as_deref()),
            UiEvent::ToolArgsDelta { id, delta } => self.with(id, |call, write| call.delta(delta, write)),
            UiEvent::ToolArgs { id, arguments } => self.with(id, |call, write| call.arguments(arguments.get(), write)),
            UiEvent::ToolArgsError { id, message } => self.with(id, |call, write| call.unreadable(message, write)),
            UiEvent::ClientRequest { id } => self.with(id, Call::hand_over),
            UiEvent::ApprovalRequest { id, approval_id, reason } => {
                self.with(id, |call, write| call.ask(approval_id, reason.as_deref(), write));
            }
            UiEvent::ApprovalResponse { approval_id, approved, reason } => {
                let asked = |call: &&Call| matches!(&call.wait, Wait::Asked(id) if id == approval_id);
                if let Some(id) = self.calls.iter().find(asked).map(|call| call.part.id.clone()) {
                    self.with(&id, |call, write| call.answer(*approved, reason.as_deref(), write));
                }
            }
            UiEvent::ToolResult { id, result, is_error, artifact } => {
                let artifact = artifact.as_deref().map(RawValue::get).map(keys::whole);
                self.settle(id, |call, write| call.result(result.get(), *is_error, artifact.as_deref(), write));
            }
            UiEvent::ToolDenied { id, result } => self.settle(id, |call, write| call.denied(result.get(), write)),
            UiEvent::StepFinish { reason, usage, continued } => self.finish_step(reason, *usage, *continued),
            UiEvent::Finish { reason, usage } => self.finish(reason, *usage),
            UiEvent::Error { message } => self.fail(message),
        }
    }

    fn begin(&mut self, id: Option<&str>) {
        if self.message.is_none() {
            let id = id.map_or_else(|| format!("msg_{}", Uuid::new_v4().simple()), str::to_owned);
            self.write(&Frame::MessageStart { id: &id });
            self.message = Some(id);
        }
    }

    fn begin_step(&mut self) {
        self.begin(None);
        if !self.in_step {
            self.in_step = true;
            let id = self.message.clone().unwrap_or_default();
            self.write(&Frame::StepStart { id: &id });
        }
    }

    fn part(&mut self, id: String, name: String) -> Part {
        self.parts += 1;
        Part { index: self.parts - 1, id, name }
    }

    fn add_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin_step();
        let part = self.text.take().unwrap_or_else(|| {
            self.texts += 1;
            let part = self.part(format!("text-{}", self.texts), String::new());
            self.write(&Frame::TextStart(&part));
            part
        });
        self.write(&Frame::Text { part: &part, text });
        self.text = Some(part);
    }

    fn end_text(&mut self) {
        if let Some(part) = self.text.take() {
            self.write(&Frame::TextEnd(&part));
        }
    }

    fn start(&mut self, id: &str, name: &str, parent: Option<&str>) {
        if !self.used.insert(self.hasher.hash_one(id)) {
            return;
        }
        self.begin_step();
        self.end_text();
        let part = self.part(id.to_owned(), name.to_owned());
        self.write(&Frame::CallStart { call: &part, parent });
        self.calls.push(Call::new(part));
    }

    fn with(&mut self, id: &str, act: impl FnOnce(&mut Call, &mut dyn FnMut(&Frame<'_>))) {
        // A call of an earlier step goes on inside of a step (U6).
        if self.call(id).is_some() {
            self.begin_step();
        }
        let Self { protocol, calls, out, .. } = self;
        if let Some(call) = calls.iter_mut().find(|call| call.part.id == id) {
            act(call, &mut |frame| protocol.write(frame, out));
        }
    }

    fn settle(&mut self, id: &str, act: impl FnOnce(&mut Call, &mut dyn FnMut(&Frame<'_>))) {
        self.with(id, act);
        self.calls.retain(|call| call.part.id != id);
    }

    fn close(&mut self, id: &str) {
        self.with(id, Call::close);
    }

    /// Ends every call that nobody can go on with: no half arguments stay open for a client to run.
    fn settle_rest(&mut self, reason: &str) {
        loop {
            let lost = |call: &&Call| !call.is_closed() || (reason != TOOL_CALLS && !call.waits());
            let ids: Vec<_> = self.calls.iter().filter(lost).map(|call| call.part.id.clone()).collect();
            for id in ids {
                self.settle(&id, |call, write| {
                    call.result(&failure(Outcome::OutcomeUnknown, "The call did not end"), true, None, write);
                });
            }
            if self.held.is_empty() {
                break;
            }
            self.release();
        }
    }

    fn finish_step(&mut self, reason: &str, usage: [u64; 2], continued: bool) {
        if !self.in_step {
            return;
        }
        self.end_text();
        let reason = reason_word(reason);
        self.settle_rest(reason);
        self.end_text();
        let reason = if self.calls.iter().any(Call::waits) { TOOL_CALLS } else { reason };
        self.in_step = false;
        self.write(&Frame::StepFinish { reason, usage, continued });
    }

    fn leave(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.write(&Frame::Left(&call.part));
        }
        self.over = true;
    }

    pub(super) fn finish(&mut self, reason: &str, usage: [u64; 2]) {
        if self.over {
            return;
        }
        self.begin(None);
        self.finish_step(reason, usage, false);
        let reason = if self.calls.is_empty() { reason_word(reason) } else { TOOL_CALLS };
        self.leave();
        self.write(&Frame::Finish { reason, usage });
    }

    fn fail(&mut self, message: &str) {
        self.begin(None);
        self.end_text();
        if self.in_step {
            self.settle_rest("error");
            self.end_text();
        }
        self.leave();
        self.write(&Frame::Error { message });
    }
}
