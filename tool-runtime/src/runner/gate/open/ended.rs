//! The end of a call: its result, its record, and its terminal event. A call whose future is dropped ends in the same
//! way.

use tokio::runtime::Handle;

use crate::call::{CallId, Cause, Outcome, ToolExecResult, ToolInvocationRecord};
use crate::contain::discard;
use crate::runner::gate::draft::Draft;
use crate::runner::gate::ending::{Ending, Stop, Suspended};
use crate::runner::gate::open::{OpenCall, Phase};
use crate::runner::ledger::accounts::{Booking, size};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::report::telemetry;
use crate::store::WriteHandle;
use crate::tool::ToolEffect;

impl OpenCall {
    /// Returns the record of a call that is about to wait.
    pub(in crate::runner) fn suspended_record(&self, suspended: &Suspended) -> Option<ToolInvocationRecord> {
        let (prepared, question) = (suspended.prepared.clone(), (*suspended.question).clone());
        let result = ToolExecResult::suspended(self.id().clone(), suspended.outcome(), prepared, question);
        self.draft.clone().take_record(&self.run.shared().digests, false, &result, None, None).map(|record| *record)
    }

    /// Returns the id for the model.
    pub(super) fn id(&self) -> &CallId {
        self.id.as_ref().unwrap_or(&self.draft.id)
    }

    /// Returns the result of a call that ended, and the reason if it failed.
    #[inline]
    pub(super) fn result(&self, ended: Result<Ending, Stop>) -> (ToolExecResult, Option<Stop>) {
        let (id, executed) = (self.id().clone(), self.draft.executed());
        let (mut result, stop) = match ended {
            Ok(Ending::Delivered(delivered)) => (ToolExecResult::delivered(id, executed, delivered), None),
            Ok(Ending::Suspended(suspended)) => {
                let outcome = suspended.outcome();
                (ToolExecResult::suspended(id, outcome, suspended.prepared, *suspended.question), None)
            }
            // The record already contains the intervention.
            Ok(Ending::Elsewhere(result) | Ending::Refused(result)) => return (*result, None),
            Ok(Ending::NotTaken(_)) => (Stop::new(Outcome::ApprovalMismatch).result(id, executed), None),
            Err(stop) => (stop.result(id, executed), Some(stop)),
        };
        if let Some(intervention) = self.draft.intervention() {
            result = result.with_intervention(Some(intervention));
        }
        (result, stop)
    }

    /// Returns the record of a call that ends or waits now. `None` if the record was taken before.
    #[inline]
    pub(super) fn record(&mut self, result: &ToolExecResult, stop: Option<&Stop>) -> Option<Box<ToolInvocationRecord>> {
        self.ended = (!result.outcome().is_suspension()).then(|| self.run.shared().clock.now());
        self.draft.take_record(&self.run.shared().digests, self.run.has_sink(), result, stop, self.ended)
    }

    /// Writes the record to the store, together with the other writes of the call's end.
    #[inline]
    pub(super) fn write(&mut self, result: &ToolExecResult, stop: Option<&Stop>) -> WriteHandle {
        let Some(record) = self.record(result, stop) else { return WriteHandle::ready(Ok(())) };
        let settled = Booking::settle(self.held.take(), result);
        LedgerClient(&self.run).put(record, self.attempt.as_deref(), settled, self.suspending.take())
    }

    /// Emits the terminal event, adds the call to the run's totals, and reports a failure once.
    #[inline]
    pub(super) fn close(&mut self, result: &ToolExecResult, stop: Option<&Stop>) {
        self.phase = Phase::Announced;
        telemetry::announce_end(&self.run, &self.draft, result);
        let latency = (!result.outcome().is_suspension()).then(|| self.latency());
        let used = self.used.take();
        if latency.is_some() || used.is_some() {
            let mut state = self.run.state();
            if let Some(latency) = latency {
                state.account(result.outcome(), latency, size(result));
            }
            if self.run.spending().is_unlimited() {
                state.count(used);
            }
        }
        // The calls of a graph also count as spent by the run that called the graph.
        if let Some(parent) = self.run.parent().filter(|parent| parent.spending().is_unlimited()) {
            parent.state().count(used);
        }
        if let Some(stop) = stop {
            telemetry::contained(&self.run, &self.draft, stop);
        }
    }

    /// Returns the duration of the call in milliseconds; 0 if the clock was set back.
    fn latency(&self) -> u64 {
        let ended = self.ended.unwrap_or_else(|| self.run.shared().clock.now());
        u64::try_from(ended.duration_since(self.started).as_millis()).unwrap_or(0)
    }

    /// Notes that the result is returned: `Run::may_have_begun` returns `false` from now on. `read_only` calls are
    /// never marked as begun, so they are skipped.
    #[inline]
    pub(super) fn handed_out(&self) {
        if self.draft.effect() != Some(ToolEffect::ReadOnly) {
            self.run.state().hand_out(&self.draft.id);
        }
    }
}

impl OpenCall {
    /// Closes a call whose record is being written. Returns the handle of the write.
    pub(super) fn close_recorded(&mut self) -> Option<WriteHandle> {
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
                // The tool did not run and will not. If the store accepted the claim, the call ends here. Otherwise it
                // still waits and has no entry in the ledger, so nothing is written.
                let mut stop = cancelled(Outcome::Cancelled);
                if self.has_acted {
                    self.draft.set_executed(true);
                    stop = stop.unknown();
                }
                let result = stop.result(self.id().clone(), self.draft.executed());
                if let Some(attempt) = self.attempt.take()
                    && let Some(record) = self.record(&result, Some(&stop))
                {
                    let receipt = LedgerClient(&self.run).put_if_begun(record, *attempt);
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
            // Another process may have begun the call, and `drop` cannot wait for the store.
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
        let stop = self.own_up(cancelled(outcome));
        let (result, stop) = self.result(Err(stop));
        let receipt = self.write(&result, stop.as_ref());
        self.close(&result, stop.as_ref());
        telemetry::await_receipt(&self.run, &self.draft, receipt);
    }

    /// Ends a call in a separate task, which reads from the store whether another process began it. Outside a tokio
    /// runtime there is no such task, and the call ends as `outcome_unknown`.
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
            origin: self.origin,
            looks: self.looks,
            has_acted: self.has_acted,
            phase: std::mem::replace(&mut self.phase, Phase::Announced),
            is_left: true,
        };
        runtime.spawn(async move { discard(left.finish(Err(cancelled(Outcome::Cancelled))).await) });
    }
}

/// The code of a call in a purged or erased run.
/// [`StoreError::RunPurged`](crate::store::StoreError::RunPurged) has the same code.
const RUN_PURGED: &str = "run_purged";

fn cancelled(outcome: Outcome) -> Stop {
    let mut stop = Stop::new(outcome);
    stop.cause = Some(Cause::Cancelled);
    stop
}

/// Returns the end of a call in a purged or erased run, which accepts no further record and no call with effects.
pub(super) fn run_purged() -> Stop {
    let mut stop = Stop::new(Outcome::Cancelled);
    stop.tool_code = Some(RUN_PURGED.to_owned());
    stop.message("This run was purged or erased. No call is recorded in it any more; begin a new run.")
}

/// Returns the end of a call that ran without a record although the policy requires one.
pub(super) fn withheld(draft: &Draft) -> Stop {
    let may_have_acted = draft.executed() && draft.effect() != Some(ToolEffect::ReadOnly);
    let mut stop = Stop::new(if may_have_acted { Outcome::OutcomeUnknown } else { Outcome::Cancelled });
    stop.cause = may_have_acted.then_some(Cause::Lost);
    stop.message("No record of this call could be kept, so its result is withheld.")
}
