//! Begins and ends messages and steps. At the end, open calls get a failure, or stay open if they wait for a person or
//! a client.

use uuid::Uuid;

use crate::call::Outcome;
use crate::wire::Usage;
use crate::wire::ui::Protocol;
use crate::wire::ui::call::{Call, Earlier, failure};
use crate::wire::ui::frame::{Frame, Open, RunIds, TOOL_CALLS, reason_word};
use crate::wire::ui::order::Order;

impl Order {
    /// Sets the ids of the run, unless the run has started.
    pub(in crate::wire::ui) fn for_run(&mut self, thread: &str, run: &str) {
        if !self.begun {
            self.run = RunIds { thread: thread.to_owned(), run: run.to_owned() };
        }
    }

    /// Continues a message. Calls that an earlier response announced are updated in place; protocols without a frame
    /// for that start them again.
    pub(in crate::wire::ui) fn resume(&mut self, message: &str, calls: impl Iterator<Item = (String, Earlier)>) {
        if self.protocol == Protocol::AgUi {
            // The run needs another id, because text ids of the earlier response may begin with the id of the message.
            self.run = RunIds { thread: message.to_owned(), run: format!("run_{}", Uuid::new_v4().simple()) };
        }
        self.name(message);
        if self.protocol.updates_in_place() {
            for (id, asked) in calls {
                if self.used.insert(self.hash(&id)) {
                    self.calls.push(Call::earlier(id, asked));
                }
            }
        }
    }

    /// Sets the id of the message, unless it has one. AG-UI does not start the run yet, so that the ids of the run can
    /// still be set.
    pub(super) fn name(&mut self, id: &str) {
        if self.message.is_none() {
            self.message = Some(id.to_owned());
            if self.protocol != Protocol::AgUi {
                self.begin();
            }
        }
    }

    pub(super) fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let fresh = || format!("msg_{}", Uuid::new_v4().simple());
        let id = self.message.get_or_insert_with(fresh).clone();
        for name in [&mut self.run.thread, &mut self.run.run] {
            if name.is_empty() {
                name.clone_from(&id);
            }
        }
        let Self { protocol, run, out, .. } = self;
        protocol.write(&Frame::MessageStart { id: &id, run }, out);
    }

    pub(super) fn begin_step(&mut self) {
        self.begin();
        if !self.in_step {
            self.in_step = true;
            let id = self.message.clone().unwrap_or_default();
            self.write(&Frame::StepStart { id: &id });
            self.write_files();
        }
    }

    /// Ends every call that cannot continue, so that no client runs a call with incomplete arguments.
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

    fn begin_step_of_files(&mut self) {
        if !self.files.is_empty() {
            self.begin_step();
        }
    }

    pub(super) fn finish_step(&mut self, reason: &str, usage: Usage, continued: bool) {
        if !self.in_step {
            return;
        }
        self.end_words();
        let reason = reason_word(reason);
        self.settle_rest(reason);
        self.end_words();
        let reason = if self.calls.iter().any(Call::waits) { TOOL_CALLS } else { reason };
        self.in_step = false;
        self.carrier = None;
        self.write(&Frame::StepFinish { reason, usage, continued });
    }

    /// Ends the message; open calls stay open for the person or client that they wait for.
    fn leave(&mut self) -> Vec<Call> {
        let left = std::mem::take(&mut self.calls);
        for call in &left {
            self.write(&Frame::Left(&call.part));
        }
        self.over = true;
        left
    }

    pub(in crate::wire::ui) fn finish(&mut self, code: &str, usage: Usage) {
        if self.over {
            return;
        }
        self.begin();
        self.begin_step_of_files();
        self.finish_step(code, usage, false);
        let reason = if self.calls.is_empty() { reason_word(code) } else { TOOL_CALLS };
        let left = self.leave();
        let open: Vec<_> = left.iter().map(|call| Open { call: &call.part, question: call.question() }).collect();
        let Self { protocol, run, out, .. } = self;
        protocol.write(&Frame::Finish { reason, code, usage, run, open: &open }, out);
    }

    pub(super) fn fail(&mut self, code: Option<&str>, message: &str) {
        self.begin();
        self.begin_step_of_files();
        self.end_words();
        if self.in_step {
            self.settle_rest("error");
            self.end_words();
        }
        self.leave();
        self.write(&Frame::Error { code, message });
    }
}
