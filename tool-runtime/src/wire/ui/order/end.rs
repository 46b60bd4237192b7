//! The end of steps and messages: what is still open is settled or left to whom it waits for.

use crate::call::Outcome;
use crate::wire::Usage;
use crate::wire::ui::call::{Call, failure};
use crate::wire::ui::frame::{Frame, TOOL_CALLS, reason_word};
use crate::wire::ui::order::Order;

impl Order {
    /// Ends every call that nobody can continue: no incomplete arguments stay open for a client to run.
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

    pub(super) fn finish_step(&mut self, reason: &str, usage: Usage, continued: bool) {
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

    pub(in crate::wire::ui) fn finish(&mut self, reason: &str, usage: Usage) {
        if self.over {
            return;
        }
        self.begin(None);
        self.finish_step(reason, usage, false);
        let reason = if self.calls.is_empty() { reason_word(reason) } else { TOOL_CALLS };
        self.leave();
        self.write(&Frame::Finish { reason, usage });
    }

    pub(super) fn fail(&mut self, message: &str) {
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
