//! What is made of a call that ended: its result, its record, and what the store is told.

use crate::call::{Outcome, ToolExecResult, ToolInvocationRecord};
use crate::runner::accounts::Held;
use crate::runner::ending::{Ending, Stop, Suspended};
use crate::runner::open::OpenCall;
use crate::store::Receipt;
use crate::tool::ToolEffect;

impl OpenCall {
    /// The record of a call that is about to wait.
    pub(in crate::runner) fn suspended_record(&self, suspended: &Suspended) -> ToolInvocationRecord {
        let prepared = suspended.prepared.clone();
        let result = ToolExecResult::suspended(self.id.clone(), suspended.outcome(), prepared);
        *self.draft.record(&self.run, &result, None, None)
    }

    /// The result of a call that ended, and why it failed.
    #[inline]
    pub(super) fn result(&self, ended: Result<Ending, Stop>) -> (ToolExecResult, Option<Stop>) {
        let (id, executed) = (self.id.clone(), self.draft.executed());
        let result = match ended {
            Ok(Ending::Delivered(delivered)) => ToolExecResult::delivered(id, executed, delivered),
            Ok(Ending::Suspended(suspended)) => ToolExecResult::suspended(id, suspended.outcome(), suspended.prepared),
            Ok(Ending::Elsewhere(result)) => *result,
            Ok(Ending::NotTaken(_)) => Stop::new(Outcome::ApprovalMismatch).result(id, executed),
            Err(stop) => return (stop.result(id, executed), Some(stop)),
        };
        (result, None)
    }

    /// The record of a call that ends now, unless it is suspended.
    #[inline]
    pub(super) fn record(&mut self, result: &ToolExecResult, stop: Option<&Stop>) -> Box<ToolInvocationRecord> {
        self.ended = (!result.outcome().is_suspension()).then(|| self.run.shared().clock.now());
        self.draft.record(&self.run, result, stop, self.ended)
    }

    /// Hands the record to the store, with what else is written about the call's end.
    #[inline]
    pub(super) fn write(&mut self, result: &ToolExecResult, stop: Option<&Stop>) -> Receipt {
        let record = self.record(result, stop);
        let settled = Held::settle(self.held.take(), result);
        self.run.put(record, self.attempt.as_deref(), settled, self.suspending.take())
    }

    /// The result reaches the caller, so that nobody asks any more whether the call began. One that only reads was not
    /// noted.
    #[inline]
    pub(super) fn handed_out(&self) {
        if self.draft.effect() != Some(ToolEffect::ReadOnly) {
            self.run.state().hand_out(&self.draft.id);
        }
    }
}
