//! [`OpenCall`]: the guard that gives every call exactly one record and one terminal event, even if its future is
//! dropped.

mod begun;
mod ended;

use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::call::{CallId, Cause, Decision, Outcome, SHOWN_BYTES, ToolCall, ToolContext, ToolExecResult, ledger_key};
use crate::contain::discard;
use crate::hydrate::{Frozen, Hydrated, Treatment};
use crate::runner::gate::deliver;
use crate::runner::gate::deliver::adopt;
use crate::runner::gate::draft::{Called, Draft, Refused, Shown};
use crate::runner::gate::ending::{Ending, Stop};
use crate::runner::gate::graph;
use crate::runner::gate::spans::Parent;
use crate::runner::ledger::accounts::Booking;
use crate::runner::ledger::client::{Attempt, Claim, LedgerClient, Suspending};
use crate::runner::report::telemetry;
use crate::runner::run::call_ids::Taken;
use crate::runner::waiting::labels;
use crate::runner::{CallClient, Continued, ResumeError, Run};
use crate::store::waiting::{self, Fate};
use crate::store::{Key, StoreError, WriteHandle};
use crate::tool::{Digested, Hash, ToolEffect};

/// An open call. Dropping it early records it as `cancelled`, or as `outcome_unknown` if a tool with effects had begun.
///
/// Fields that only some calls need are behind pointers, because this value is moved for every call.
pub(in crate::runner) struct OpenCall {
    run: Run,
    /// The id that the model gave, if it is a duplicate or too long. The record then has a generated id; the result for
    /// the model has the model's id.
    id: Option<CallId>,
    taken: Taken,
    /// When the call arrived; for a call that waited, when it was reopened.
    started: Timestamp,
    ended: Option<Timestamp>,
    pub(in crate::runner) parent: Parent,
    pub(in crate::runner) draft: Draft,
    /// The call's attempt in the ledger.
    pub(in crate::runner) attempt: Option<Box<Attempt>>,
    /// The suspension that is being written to the store.
    pub(in crate::runner) suspending: Option<Box<Suspending>>,
    /// The bytes of the result to add to the run's totals. `None` if the call does not count against them.
    pub(in crate::runner) used: Option<u64>,
    /// The amount that the call has booked on accounts.
    pub(in crate::runner) held: Option<Box<Booking>>,
    /// A result that another process already recorded; the tool does not run again.
    pub(in crate::runner) known: Option<Box<ToolExecResult>>,
    /// The waiting call that must be claimed before anything else about this call is written.
    pub(in crate::runner) claim: Option<Box<Claim>>,
    /// A graph that waited, and the decision on its inner call.
    pub(in crate::runner) continued: Option<Box<Continued>>,
    /// The grant that permits the call, and the policy's decision before the grant.
    pub(in crate::runner) grant: Option<Box<(Key, Option<Decision>)>>,
    /// The MCP client that made the call, if one did.
    pub(in crate::runner) client: Option<Box<CallClient>>,
    pub(in crate::runner) origin: Origin,
    /// Set while a read from the store checks whether the call began under another definition of its tool.
    pub(in crate::runner) looks: bool,
    /// Set if calls of its graph may have had effects, although the call itself waited and did not end.
    pub(in crate::runner) has_acted: bool,
    /// Set if the caller dropped the future; a background task then finishes the call.
    is_left: bool,
    phase: Phase,
}

/// Whether an earlier process may have made a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Origin {
    /// In a continued run, an earlier process may have made the call.
    Unknown,
    /// No earlier process can have made the call.
    New,
    /// Another process began the call and is gone; the entry in the ledger is open.
    TakenOver {
        /// Its tool may only reconcile it.
        only_reconciles: bool,
    },
}

enum Phase {
    Running,
    /// The call is suspended. Dropping this value changes nothing.
    Waiting,
    /// The claim is sent to the store and not yet acknowledged; the call has not begun.
    Claiming,
    /// The record is being written; the event has not been emitted.
    Recorded(Box<Recorded>),
    Announced,
}

struct Recorded {
    result: ToolExecResult,
    stop: Option<Stop>,
    receipt: WriteHandle,
}

impl OpenCall {
    /// Opens a call and emits its start event, before any check.
    #[inline]
    pub(in crate::runner) fn start(run: Run, call: ToolCall) -> Self {
        let called = Called::of(&run, &call.name);
        let mut open = Self::announced(run, &call.id, called);
        open.draft.keep_unparsed(call);
        open
    }

    /// Opens a hydrated call and emits its start event. If another run hydrated the call, its arguments are not shown,
    /// because the tool of that run may have marked other arguments as sensitive.
    pub(in crate::runner) fn start_hydrated(run: Run, hydrated: &Hydrated) -> Self {
        let call = hydrated.call();
        let arguments = if Arc::ptr_eq(run.fields(), &hydrated.frozen.run) {
            Shown::Masked(hydrated.frozen.masked())
        } else {
            Shown::unread(call.arguments())
        };
        let called = Called::of(&run, &call.name);
        let mut open = Self::announced(run, &call.id, called);
        open.draft.set_shown_arguments(arguments);
        open
    }

    #[inline]
    fn announced(run: Run, id: &CallId, called: Called) -> Self {
        // An id that exceeds the policy's limit is refused while the call is read; it is not remembered.
        let bytes = id.as_str().len();
        let is_remembered = bytes <= SHOWN_BYTES || bytes <= run.policy().call_id_bytes();
        let taken = if is_remembered { run.state().call_ids.take(id) } else { Taken::First };
        let is_kept = is_remembered && taken == Taken::First;
        let (record_id, id) = if is_kept { (id.clone(), None) } else { (CallId::generate(), Some(id.clone())) };
        let draft = Draft::new(&run, record_id, called);
        telemetry::announce_start(&run, &draft);
        let started = draft.started_at;
        Self::at(run, id, taken, draft, started, None)
    }

    /// Reopens a suspended call, whose start event was emitted when it arrived. It still waits until it is claimed.
    pub(in crate::runner) fn reopen(run: Run, claim: Box<Claim>) -> Self {
        let draft = Draft::reopened(&run, claim.waiting.record.clone());
        let started = run.shared().clock.now();
        Self::at(run, None, Taken::First, draft, started, Some(claim))
    }

    #[inline]
    fn at(
        run: Run,
        id: Option<CallId>,
        taken: Taken,
        draft: Draft,
        started: Timestamp,
        claim: Option<Box<Claim>>,
    ) -> Self {
        let parent = Parent::surroundings();
        let phase = if claim.is_some() { Phase::Waiting } else { Phase::Running };
        Self {
            run,
            id,
            taken,
            started,
            ended: None,
            parent,
            draft,
            attempt: None,
            suspending: None,
            used: None,
            held: None,
            known: None,
            claim,
            continued: None,
            grant: None,
            client: None,
            origin: Origin::Unknown,
            looks: false,
            has_acted: false,
            is_left: false,
            phase,
        }
    }

    /// Replaces the start time with the store's time, for the first call of a process.
    #[cold]
    pub(super) async fn date(&mut self) {
        let shared = Arc::clone(self.run.shared());
        shared.date().await;
        let now = shared.clock.now();
        self.started = now;
        self.draft.starts(now);
    }

    /// Notes that the claim of a suspended call is about to be sent to the store.
    pub(in crate::runner) fn claimed(&mut self) {
        self.phase = Phase::Claiming;
    }

    pub(in crate::runner) const fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the token that cancels the call: the token of its MCP client, or of its run.
    pub(in crate::runner) fn cancellation(&self) -> &CancellationToken {
        self.client.as_ref().map_or(&self.run().options().cancellation, |client| &client.cancellation)
    }

    /// Returns whether the call's id is new, repeated, or beyond the limit of the run.
    pub(in crate::runner) const fn id_status(&self) -> Taken {
        self.taken
    }

    /// Puts back the claim of a call that could not begin, so that the call still waits.
    pub(in crate::runner) fn unclaimed(&mut self, claim: Box<Claim>) {
        (self.attempt, self.claim, self.phase) = (None, Some(claim), Phase::Waiting);
    }

    /// Passes the call to the stages that hydrate it.
    ///
    /// The closure is synchronous and also returns the arguments for the record, so a call that is dropped has either
    /// unread or recorded arguments.
    #[inline]
    pub(in crate::runner) fn read(
        &mut self,
        read: impl FnOnce(&mut Self, ToolCall) -> Result<Hydrated, Refused>,
    ) -> Result<Hydrated, Stop> {
        let Some(call) = self.draft.take_unparsed() else { return Err(Stop::new(Outcome::Cancelled)) };
        let read = read(self, call);
        self.draft.read(read)
    }

    /// Adds to the record the changes that hydration made to the arguments.
    #[inline]
    pub(in crate::runner) fn hydrated(&mut self, treatment: &Treatment) {
        self.draft.hydrated(treatment, &self.run.shared().compiled.label);
    }

    /// Notes that the tool begins to run, here or at a client.
    #[inline]
    pub(in crate::runner) fn begin(&mut self) {
        self.phase = Phase::Running;
        self.draft.set_executed(true);
        if self.draft.effect().is_some_and(|effect| effect != ToolEffect::ReadOnly) {
            self.run.state().begin(&self.draft.id);
        }
    }

    /// Notes that a client may have executed the call. The call still waits until it is claimed.
    pub(in crate::runner) const fn at_client(&mut self) {
        self.draft.set_executed(true);
    }

    /// Notes that the tool only prepared a payload for its client, or that an earlier attempt had no effect.
    pub(in crate::runner) fn had_no_effect(&mut self) {
        self.draft.set_executed(false);
        self.run.state().hand_out(&self.draft.id);
    }

    /// Whether another process began the call and is gone.
    pub(in crate::runner) const fn is_taken_over(&self) -> bool {
        matches!(self.origin, Origin::TakenOver { .. })
    }

    /// Changes the stop of a call to an unknown outcome if calls of its graph may have had effects.
    pub(super) fn own_up(&mut self, stop: Stop) -> Stop {
        if !self.has_acted || self.draft.executed() {
            return stop;
        }
        self.draft.set_executed(true);
        self.run.state().begin(&self.draft.id);
        stop.unknown()
    }

    /// Returns the key of this call in the ledger, before the call has a [`ToolContext`].
    pub(in crate::runner) fn ledger_key(&self, frozen: &Frozen) -> Hash {
        let options = self.run.options();
        let party = (options.tenant.as_deref(), options.principal.as_deref());
        ledger_key(
            party,
            self.run.identity(),
            &frozen.entry.spec.name,
            &self.draft.id,
            Digested::effective_digest(frozen),
        )
    }

    /// Returns the id of the run in which the graph of this call works. A graph that waited, or that an earlier attempt
    /// began, keeps its run, where it finds its earlier steps.
    pub(in crate::runner) fn graph_run(&self, context: &ToolContext) -> Arc<str> {
        let waited = self.continued.as_ref().map(|continued| &continued.pending.run_id);
        let entered = || self.attempt.as_ref().and_then(|attempt| attempt.graph.as_ref());
        let new = || graph::run_id(&self.run().shared().digests, &context.idempotency_key()).into();
        waited.or_else(entered).map_or_else(new, Arc::clone)
    }

    /// Writes the record, then emits the terminal event, then returns the result.
    ///
    /// Takes the call by reference, because a future that owns the call stores it twice.
    pub(in crate::runner) async fn finish(&mut self, ended: Result<Ending, Stop>) -> ToolExecResult {
        if self.draft.has_digests() {
            Box::pin(self.run.digests()).await;
        }
        let ended = match self.known.take() {
            // The gate refuses the call now, but an earlier attempt ended it, so its recorded result is returned.
            Some(known) => Ok(Ending::Elsewhere(known)),
            None => match ended {
                Err(stop) if self.may_be_known(&stop) => match Box::pin(self.look(stop)).await {
                    Err(stop) => Err(self.own_up(stop)),
                    known => known,
                },
                Err(stop) if self.leaves_unknown(&stop) => Err(stop.unknown()),
                Err(stop) => Err(self.own_up(stop)),
                ended => ended,
            },
        };
        if let Ok(Ending::Elsewhere(result)) = &ended {
            adopt(&self.run, self.draft.name(), result);
        }
        let is_kept = matches!(&ended, Ok(Ending::Suspended(_) | Ending::Elsewhere(_)));
        let (mut result, stop) = self.result(ended);
        let receipt = if is_kept { WriteHandle::ready(Ok(())) } else { self.write(&result, stop.as_ref()) };
        if receipt.is_kept() {
            self.close(&result, stop.as_ref());
        } else {
            // If the future is dropped while it waits, `drop` needs the result for the event and the report.
            let id = self.id().clone();
            self.phase = Phase::Recorded(Box::new(Recorded { result: result.clone(), stop, receipt }));
            if let Phase::Recorded(recorded) = &mut self.phase
                && let Err(error) = (&mut recorded.receipt).await
            {
                telemetry::record_lost(&self.run, &self.draft, &error);
                if matches!(error, StoreError::Fenced) {
                    // Another process closes the call as `outcome_unknown`, or has closed it.
                    let mut stop = Stop::new(Outcome::OutcomeUnknown);
                    stop.cause = Some(Cause::Lost);
                    result = stop.result(id, true);
                    (recorded.result, recorded.stop) = (result.clone(), Some(stop));
                } else if matches!(error, StoreError::RunPurged) {
                    let stop = ended::run_purged();
                    result = stop.result(id, self.draft.executed());
                    (recorded.result, recorded.stop) = (result.clone(), Some(stop));
                } else if result.value().is_some() && self.run.policy().requires_records() {
                    let stop = ended::withheld(&self.draft);
                    result = stop.result(id, self.draft.executed());
                    (recorded.result, recorded.stop) = (result.clone(), Some(stop));
                }
                discard(error);
            }
            self.close_recorded();
        }
        // The last wait. If the future is dropped here, the result is not returned.
        labels::share(&self.run).await;
        if self.draft.executed() || is_kept {
            self.handed_out();
        }
        result
    }

    /// Finishes a call that was reopened. The transaction that writes its record also removes it from the waiting
    /// calls, unless it was claimed when it began to run.
    pub(in crate::runner) async fn finish_waiting(
        mut self,
        ended: Result<Ending, Stop>,
    ) -> Result<ToolExecResult, ResumeError> {
        let ended = match ended {
            Ok(Ending::NotTaken(error)) => return Err(error),
            Ok(Ending::Refused(result)) => return Ok(*result),
            ended => ended,
        };
        let Some(claim) = self.claim.take() else {
            return Ok(self.finish(ended).await);
        };
        let Claim { waiting, decision, lock: _lock } = *claim;
        let ledger = waiting.ledger_key();
        let (result, stop) = self.result(ended);
        // Without a record, the call was finished already and does not wait.
        let Some(record) = self.record(&result, stop.as_ref()) else { return Ok(result) };
        let then = Fate::End(record);
        LedgerClient(&self.run).take(waiting::Taken { call: waiting.call, decision, ledger, then }, None).await?;
        if let Some(delivered) = result.as_delivered()
            && let Some(entry) = self.run.shared().catalog.entry(self.draft.name())
        {
            deliver::read(&self.run, entry, delivered);
        }
        self.close(&result, stop.as_ref());
        labels::share(&self.run).await;
        self.run.state().hand_out(&self.draft.id);
        Ok(result)
    }
}
