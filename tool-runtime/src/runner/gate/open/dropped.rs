//! A call whose future is dropped ends like any other: with its record and its terminal event.

use tokio::runtime::Handle;

use crate::call::{Cause, Outcome};
use crate::contain::discard;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::{OpenCall, Phase};
use crate::runner::report::telemetry;
use crate::store::Receipt;

impl OpenCall {
    /// Closes a call whose record is on its way. Returns its receipt.
    pub(super) fn close_recorded(&mut self) -> Option<Receipt> {
        let Phase::Recorded(recorded) = std::mem::replace(&mut self.phase, Phase::Announced) else { return None };
        self.close(&recorded.result, recorded.stop.as_ref());
        Some(recorded.receipt)
    }
}

impl Drop for OpenCall {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.phase, Phase::Announced | Phase::Waiting) {
            self.end_dropped();
        }
    }
}

impl OpenCall {
    #[cold]
    fn end_dropped(&mut self) {
        match self.phase {
            Phase::Announced | Phase::Waiting => {}
            Phase::Claiming => {
                // The tool did not run, and will not: if the call was taken, this is its end.
                let stop = cancelled(Outcome::Cancelled);
                let result = stop.result(self.id().clone(), false);
                if let Some(attempt) = self.attempt.take()
                    && let Some(record) = self.record(&result, Some(&stop))
                {
                    let receipt = self.run.put_if_begun(record, *attempt);
                    telemetry::await_receipt(&self.run, &self.draft, receipt);
                }
            }
            Phase::Recorded(_) => {
                if let Some(receipt) = self.close_recorded() {
                    telemetry::await_receipt(&self.run, &self.draft, receipt);
                }
            }
            Phase::Running if self.known.is_some() => {
                if let Some(known) = self.known.take() {
                    self.close(&known, None);
                }
            }
            // Another process may have begun it, and nobody can be asked here.
            Phase::Running if self.may_be_elsewhere() => self.end_later(),
            Phase::Running => self.end_now(),
        }
    }

    /// Ends a call that no other process can have begun.
    fn end_now(&mut self) {
        let outcome = match self.draft.effect() {
            Some(effect) if self.draft.executed() => Cause::Cancelled.outcome(effect),
            _ if self.may_be_elsewhere() => Outcome::OutcomeUnknown,
            _ => Outcome::Cancelled,
        };
        let (result, stop) = self.result(Err(cancelled(outcome)));
        let receipt = self.write(&result, stop.as_ref());
        self.close(&result, stop.as_ref());
        telemetry::await_receipt(&self.run, &self.draft, receipt);
    }

    /// Ends a call in a task of its own, which asks the store whether another process began it. Where there can be no such
    /// task, nobody can say what became of the call.
    fn end_later(&mut self) {
        let runtime = Handle::try_current().ok().filter(|_| !self.is_left);
        let Some(runtime) = runtime else { return self.end_now() };
        let mut left = Self {
            run: self.run.clone(),
            id: self.id.clone(),
            taken: self.taken,
            started: self.started,
            ended: self.ended,
            parent: self.parent.clone(),
            draft: self.draft.clone(),
            attempt: self.attempt.take(),
            suspending: self.suspending.take(),
            used: self.used.take(),
            held: self.held.take(),
            known: None,
            claim: None,
            continued: None,
            grant: None,
            client: None,
            is_taken_over: self.is_taken_over,
            phase: std::mem::replace(&mut self.phase, Phase::Announced),
            is_left: true,
        };
        runtime.spawn(async move { discard(left.finish(Err(cancelled(Outcome::Cancelled))).await) });
    }
}

fn cancelled(outcome: Outcome) -> Stop {
    let mut stop = Stop::new(outcome);
    stop.cause = Some(Cause::Cancelled);
    stop
}
