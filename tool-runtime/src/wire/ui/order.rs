//! [`Order`]: takes events in any order and writes frames in valid order (rules U1 to U6 of `wire::ui`).
//!
//! When a call ends, only a 64-bit hash of its id is kept. A later call with the same id is left out, because clients
//! refuse a message that repeats an id.

mod bounds;
mod words;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::call::JsonText;
use crate::wire::Usage;
use crate::wire::ui::call::{Call, Wait};
use crate::wire::ui::frame::{Frame, Part, RunIds, Words};
use crate::wire::ui::keys;
use crate::wire::ui::{Protocol, UiEvent};

/// The state of one stream.
pub(super) struct Order {
    protocol: Protocol,
    message: Option<String>,
    run: RunIds,
    /// Whether the start of the message was written.
    begun: bool,
    /// The text or reasoning that is open.
    words: Option<(Words, Part)>,
    /// The number of ids that were generated for text and reasoning.
    named: usize,
    /// The id of the AG-UI message that the calls of this step belong to.
    carrier: Option<String>,
    parts: usize,
    calls: Vec<Call>,
    used: HashSet<u64>,
    hasher: RandomState,
    /// Events of other calls, held back until the argument text of one call is complete.
    held: Vec<UiEvent>,
    /// Files that arrived before the step that shows them.
    files: Vec<(String, String)>,
    in_step: bool,
    over: bool,
    out: Vec<u8>,
}

impl Order {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            message: None,
            run: RunIds::default(),
            begun: false,
            words: None,
            named: 0,
            carrier: None,
            parts: 0,
            calls: Vec::new(),
            used: HashSet::new(),
            hasher: RandomState::new(),
            held: Vec::new(),
            files: Vec::new(),
            in_step: false,
            over: false,
            out: Vec::new(),
        }
    }

    /// Returns the bytes that were written since the last call of this method.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Writes the end frame.
    pub(super) fn end(&mut self) {
        self.write(&Frame::End);
    }

    /// Reopens a call of an earlier response, so that its question or its client request can be written again.
    pub(super) fn reopen(&mut self, id: &str, name: &str) {
        // Within a step, clients would show the arguments as a second part, so they are not written again. In AG-UI,
        // which has no parts, they are.
        let in_place = !self.in_step || self.protocol == Protocol::AgUi;
        if let Some(call) = self.call(id) {
            call.reopen(name, in_place);
        }
    }

    /// Whether the protocol can show the question of an approval.
    pub(super) const fn shows_approvals(&self) -> bool {
        matches!(self.protocol, Protocol::UiMessageStream | Protocol::AgUi)
    }

    /// Whether the call was announced.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.used.contains(&self.hash(id))
    }

    fn hash(&self, id: &str) -> u64 {
        self.hasher.hash_one(id)
    }

    /// Returns the call if it is open.
    pub(super) fn call(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.part.id == id)
    }

    pub(super) fn push(&mut self, event: &UiEvent) {
        if self.over {
            return;
        }
        self.close_complete(event);
        if self.must_wait(event) {
            self.held.push(event.clone());
            return;
        }
        self.apply(event);
        if self.front().is_none() {
            self.release();
        }
    }

    /// Writes a status for the user, which is not part of the message.
    pub(super) fn status(&mut self, text: &str) {
        if !self.over {
            self.begin();
            self.write(&Frame::Status { text });
        }
    }

    fn write(&mut self, frame: &Frame<'_>) {
        self.protocol.write(frame, &mut self.out);
    }

    /// The call whose argument text other calls must not interrupt (U6).
    fn front(&self) -> Option<&Call> {
        self.calls.iter().find(|call| self.protocol == Protocol::DataStream && !call.is_closed())
    }

    /// Closes each front call whose argument text is complete when an event of another call arrives. The held events
    /// are older than this event, so they are written first.
    fn close_complete(&mut self, event: &UiEvent) {
        while let Some(front) = self.front()
            && event.call().is_some_and(|id| id != front.part.id)
            && front.is_complete()
        {
            let front = front.part.id.clone();
            self.close(&front);
            self.release();
        }
    }

    fn must_wait(&self, event: &UiEvent) -> bool {
        self.front().is_some_and(|front| event.call().is_some_and(|id| id != front.part.id))
    }

    fn release(&mut self) {
        for event in std::mem::take(&mut self.held) {
            self.push(&event);
        }
    }

    fn apply(&mut self, event: &UiEvent) {
        match event {
            UiEvent::MessageStart { id } => self.name(id),
            UiEvent::StepStart { id } => {
                self.finish_step("other", Usage::default(), false);
                self.name(id);
                self.begin();
                self.in_step = true;
                self.write(&Frame::StepStart { id });
                self.write_files();
            }
            UiEvent::TextDelta { text } => self.add_words(Words::Text, text),
            UiEvent::ReasoningDelta { text } => self.add_words(Words::Reasoning, text),
            UiEvent::Source { id, url, title } => self.add_source(id, url.as_deref(), title.as_deref()),
            UiEvent::File { media_type, url } => self.add_file(media_type, url),
            UiEvent::Data { name, id, value } => self.add_data(name, id.as_deref(), value.get()),
            UiEvent::ToolStart { id, name, parent_id, dynamic } => {
                let part = Part { index: 0, id: id.clone(), name: name.clone(), dynamic: *dynamic };
                self.start(part, parent_id.as_deref());
            }
            UiEvent::ToolArgsDelta { id, delta } => self.with(id, |call, write| call.delta(delta, write)),
            UiEvent::ToolArgs { id, arguments } => self.with(id, |call, write| call.arguments(arguments.get(), write)),
            UiEvent::ToolArgsError { id, message } => self.with(id, |call, write| call.unreadable(message, write)),
            UiEvent::ClientRequest { id } => self.with(id, Call::hand_over),
            UiEvent::ApprovalRequest { id, approval_id, reason } => {
                self.with(id, |call, write| call.ask(approval_id, reason.as_deref(), write));
            }
            UiEvent::ApprovalResponse { approval_id, approved, reason } => {
                let asked = |call: &&Call| matches!(&call.wait, Wait::Asked(id, _) if id == approval_id);
                if let Some(id) = self.calls.iter().find(asked).map(|call| call.part.id.clone()) {
                    self.with(&id, |call, write| call.answer(*approved, reason.as_deref(), write));
                }
            }
            UiEvent::ToolResult { id, result, is_error, artifact } => {
                let artifact = artifact.as_ref().map(JsonText::get).map(keys::whole);
                self.settle(id, |call, write| call.result(result.get(), *is_error, artifact.as_deref(), write));
            }
            UiEvent::ToolDenied { id, result } => self.settle(id, |call, write| call.denied(result.get(), write)),
            UiEvent::StepFinish { reason, usage, continued } => self.finish_step(reason, *usage, *continued),
            UiEvent::Finish { reason, usage } => self.finish(reason, *usage),
            UiEvent::Error { code, message } => self.fail(code.as_deref(), message),
        }
    }

    fn start(&mut self, part: Part, parent: Option<&str>) {
        if !self.used.insert(self.hash(&part.id)) {
            return;
        }
        self.begin_step();
        self.end_words();
        let part = Part { index: self.next_part(), ..part };
        let carrier = self.carrier();
        self.write(&Frame::CallStart { call: &part, parent, carrier: carrier.as_deref() });
        self.calls.push(Call::new(part));
    }

    fn with(&mut self, id: &str, act: impl FnOnce(&mut Call, &mut dyn FnMut(&Frame<'_>))) {
        match self.call(id).map(|call| call.is_earlier()) {
            // Clients update a part of an earlier response in place, before a step begins.
            Some(true) => self.begin(),
            // A call of an earlier step continues within a step (U6).
            Some(false) => self.begin_step(),
            None => {}
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
}
