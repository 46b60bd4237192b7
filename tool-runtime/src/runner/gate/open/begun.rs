//! Calls that another process with the same run may have begun or recorded, although this process refuses them.

use std::sync::Arc;

use crate::call::{Cause, Outcome, PendingGraph, RecordedArguments, ToolExecResult, ToolInvocationRecord};
use crate::contain::discard;
use crate::hydrate::Frozen;
use crate::runner::Run;
use crate::runner::gate::draft::Draft;
use crate::runner::gate::ending::{Ending, Stop};
use crate::runner::gate::open::{OpenCall, Origin, Phase};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::ledger::recover;
use crate::runner::run::call_ids::Taken;
use crate::runner::shows;
use crate::store::{Key, StoreError};
use crate::tool::ToolEffect;

impl OpenCall {
    /// Reopens a call that another process began and abandoned.
    pub(in crate::runner) fn taken_over(run: Run, record: ToolInvocationRecord) -> Self {
        let draft = Draft::reopened(&run, record);
        let started = run.shared().clock.now();
        let mut open = Self::at(run, None, Taken::First, draft, started, None);
        open.origin = Origin::TakenOver { only_reconciles: false };
        open
    }

    /// Opens a call that already has its record. No further record or event is written for it.
    pub(in crate::runner) fn recorded(run: Run, record: ToolInvocationRecord) -> Self {
        let mut open = Self::taken_over(run, record);
        open.phase = Phase::Announced;
        open
    }

    /// Returns the state of the graph that waits with this call.
    pub(in crate::runner) fn graph(&self) -> Option<Box<PendingGraph>> {
        self.claim.as_ref().and_then(|claim| claim.waiting.call.graph.clone())
    }

    /// Whether the ledger may contain the call and was not read yet.
    pub(super) fn may_be_known(&self, stop: &Stop) -> bool {
        (self.attempt.is_none() || self.looks) && stop.outcome != Outcome::OutcomeUnknown && self.may_be_elsewhere()
    }

    /// Whether an earlier attempt may have had an effect, although this one had none.
    pub(super) fn leaves_unknown(&self, stop: &Stop) -> bool {
        self.draft.executed()
            && stop.cause != Some(Cause::Prevented)
            && self.attempt.as_ref().is_some_and(|attempt| attempt.leaves_unknown(stop.outcome))
    }

    /// Whether a call that did not run here may have begun in another process.
    pub(super) fn may_be_elsewhere(&self) -> bool {
        !self.draft.executed()
            && self.taken == Taken::First
            && self.draft.effect() != Some(ToolEffect::ReadOnly)
            && self.run.state().is_continued()
    }

    /// Returns the result of a call that an earlier process began under another definition of its tool. If the
    /// definitions have different defaults, the call has another key in the ledger. Without this look-up, the gate
    /// would not find the call and would begin it a second time.
    pub(in crate::runner) async fn begun_as_another(
        &self,
        frozen: &Frozen,
    ) -> Result<Option<ToolExecResult>, StoreError> {
        if self.origin != Origin::Unknown || !self.may_be_elsewhere() {
            return Ok(None);
        }
        let key = Key::call(Arc::clone(self.run.identity()), self.ledger_key(frozen));
        let definition = frozen.entry.spec.definition_hash;
        let is_it = |record: &ToolInvocationRecord| {
            *record.name == *self.draft.name() && record.executed && record.definition_hash != Some(definition)
        };
        // The earlier definition may have masked other arguments. If the recorded arguments differ, the record may be
        // of another call, so its result is not read.
        let is_same = |record: &ToolInvocationRecord| self.has_same_arguments(record) == Some(true);
        let known = recover::begun_as_another(&self.run, &self.draft.id, (is_it, is_same), &key).await?;
        Ok(known.map(|ended| ended.unwrap_or_else(|| self.unknown())))
    }

    /// Returns the end of a call that stopped before the ledger was read. If another process has finished or begun the
    /// call, this process does not report it as failed or cancelled and writes no record.
    pub(super) async fn look(&self, stop: Stop) -> Result<Ending, Stop> {
        match self.known_elsewhere(&stop).await {
            Ok(None) => Err(stop),
            Ok(Some(result)) => Ok(Ending::Elsewhere(Box::new(result))),
            Err(error) => {
                discard(self.run.store_unread(error));
                // The store cannot tell whether the call has a record, so none is written.
                if is_certain(stop.outcome) { Err(stop) } else { Ok(Ending::Elsewhere(Box::new(self.unknown()))) }
            }
        }
    }

    /// Returns the result if another process has handled the call; otherwise `None`.
    async fn known_elsewhere(&self, stop: &Stop) -> Result<Option<ToolExecResult>, StoreError> {
        let is_of_this_call = |record: &ToolInvocationRecord| self.is_of_this_call(record, stop);
        let known = LedgerClient(&self.run).look_up(&self.draft.id, Some(self.draft.name()), is_of_this_call).await?;
        if let Some(None) = known
            && let Some(begun) = LedgerClient(&self.run).unfinished(&self.draft.id, Some(self.draft.name())).await?
            && LedgerClient(&self.run).is_abandoned(&begun).await?
        {
            // The gate refuses the call in this process, so its tool may not reconcile it.
            LedgerClient(&self.run).give_up(&begun, &self.draft, stop).await?;
        }
        Ok(known.map(|ended| ended.unwrap_or_else(|| self.unknown())))
    }

    /// Returns the result of a call that may run, or have run, in another process.
    pub(in crate::runner) fn unknown(&self) -> ToolExecResult {
        let outcome = Outcome::OutcomeUnknown;
        ToolExecResult::unfinished(self.draft.id.clone(), outcome, true, outcome.safe_message())
    }

    /// Whether a record belongs to this call, and not to another call with the same id. If one of the two was refused
    /// before its arguments were read, only the tools are compared.
    fn is_of_this_call(&self, record: &ToolInvocationRecord, stop: &Stop) -> bool {
        // Arguments that one process can read are readable in every process.
        let may_be = || !is_certain(stop.outcome) && !is_certain(record.outcome);
        *record.name == *self.draft.name() && self.has_same_arguments(record).unwrap_or_else(may_be)
    }

    /// Whether a record has the arguments of this call. `None` if only one of the two has readable arguments.
    fn has_same_arguments(&self, record: &ToolInvocationRecord) -> Option<bool> {
        match (&record.arguments, self.draft.recorded_arguments(&self.run.shared().digests)?) {
            (theirs @ RecordedArguments::Masked(_), RecordedArguments::Masked(ours)) => Some(shows(theirs, &ours)),
            (RecordedArguments::Unread { digest: theirs, .. }, RecordedArguments::Unread { digest: ours, .. }) => {
                Some(*theirs == ours)
            }
            _ => None,
        }
    }
}

/// Whether no process can have begun the call, because the error is in the call itself.
const fn is_certain(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::InvalidJson | Outcome::ValidationError | Outcome::LimitExceeded | Outcome::IncompleteCall
    )
}
