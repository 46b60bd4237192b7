//! The end of steps and messages: open calls are settled, or left to the person or client that they wait for.

use crate::call::Outcome;
use crate::wire::Usage;
use crate::wire::ui::call::{Call, failure};
use crate::wire::ui::frame::{Frame, Open, TOOL_CALLS, reason_word};
use crate::wire::ui::order::Order;

impl Order {
    /// Ends every call that cannot continue: no incomplete arguments stay open for a client to run.
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

    /// Leaves the open calls to the person or client that they wait for.
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
