//! [`Draft`]: collects the fields of a call's record while the call passes the stages.

mod begun;
mod shown;

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{
    ArgumentChange, CallId, Cause, Decision, Intervention, JsonText, NamedArgument, Outcome, RecordedArguments,
    RecordedRepair, RepairUse, ToolCall, ToolExecResult, ToolInvocationRecord, Violation, VoidGrant, shown,
};
use crate::catalog::Entry;
use crate::hydrate::{Hydrated, Treatment};
use crate::runner::Run;
use crate::runner::gate::draft::shown::Plain;
pub(in crate::runner) use crate::runner::gate::draft::shown::Shown;
use crate::runner::gate::ending::Stop;
use crate::runner::ledger::digests::Digests;
use crate::store::PendingCall;
use crate::tool::ToolEffect;

/// The record of a call while the call is open. Each stage adds its findings, so that the end of the call only adds the
/// outcome.
#[derive(Clone)]
pub(in crate::runner) struct Draft {
    /// The id in the record: the call's own, or a generated one if the call's id is a duplicate or too long.
    pub(in crate::runner) id: CallId,
    called: Called,
    pub(in crate::runner) started_at: Timestamp,
    effect: Option<ToolEffect>,
    /// Whether the tool began to run, here or at a client.
    executed: bool,
    /// The call, until its arguments are read. If they are never read, the record gets a digest of them.
    unparsed_call: Option<ToolCall>,
    /// The texts that a person reads while the call waits.
    explanation: Option<Box<ApprovalTexts>>,
    /// `None` after [`take_record`](Self::take_record): a call has exactly one record.
    record: Option<Box<ToolInvocationRecord>>,
    /// The arguments as events show them after [`take_record`](Self::take_record). `None` if no sink listened at that
    /// time.
    shown: Option<JsonText>,
    /// Hashes of the model's text, which the record contains only as digests. `None` if the arguments were read without
    /// a repair.
    plain: Option<Box<Plain>>,
}

/// The called tool. `Unknown` holds its name if the catalog has no such tool, or if the call was suspended or begun
/// before.
#[derive(Clone)]
pub(in crate::runner) enum Called {
    Tool(Arc<Entry>),
    /// The name as the model wrote it, cut to 128 bytes.
    Unknown(Arc<str>),
}

impl Called {
    #[inline]
    pub(in crate::runner) fn of(run: &Run, name: &str) -> Self {
        run.shared()
            .catalog
            .entry(name)
            .map_or_else(|| Self::Unknown(shown(name).into()), |entry| Self::Tool(Arc::clone(entry)))
    }

    fn name(&self) -> &Arc<str> {
        match self {
            Self::Tool(entry) => entry.spec.name.shared(),
            Self::Unknown(name) => name,
        }
    }
}

/// The texts that a person reads of a waiting call, in addition to its arguments.
#[derive(Clone)]
pub(in crate::runner) struct ApprovalTexts {
    pub(in crate::runner) summary: Option<String>,
    pub(in crate::runner) changes: Vec<ArgumentChange>,
    pub(in crate::runner) names: Vec<NamedArgument>,
}

/// A call whose arguments could not be parsed or are invalid, with the arguments as the record may show them.
pub(in crate::runner) struct Refused {
    pub(in crate::runner) stop: Stop,
    pub(in crate::runner) shown: Shown,
}

impl Draft {
    /// Returns the name as the model wrote it, cut to 128 bytes.
    pub(in crate::runner) fn name(&self) -> &str {
        self.called.name()
    }

    /// Returns the tool. `None` for a call that was suspended before, or if no tool has this name.
    pub(in crate::runner) const fn tool(&self) -> Option<&Arc<Entry>> {
        if let Called::Tool(entry) = &self.called { Some(entry) } else { None }
    }

    /// Returns the tool's effect, once it is known.
    pub(in crate::runner) const fn effect(&self) -> Option<ToolEffect> {
        self.effect
    }

    pub(in crate::runner) const fn executed(&self) -> bool {
        self.executed
    }

    pub(in crate::runner) const fn set_executed(&mut self, executed: bool) {
        self.executed = executed;
    }

    /// Keeps the call until its arguments are read.
    #[inline]
    pub(in crate::runner) fn keep_unparsed(&mut self, call: ToolCall) {
        self.unparsed_call = Some(call);
    }

    /// Sets the arguments as the record may show them.
    #[inline]
    pub(in crate::runner) fn set_shown_arguments(&mut self, arguments: Shown) {
        match arguments {
            Shown::Masked(arguments) => self.note(|record| record.arguments = RecordedArguments::Masked(arguments)),
            Shown::Unread(length, hash) => self.plain.get_or_insert_default().unread = Some((length, hash)),
        }
    }

    /// Removes the call so that its arguments can be read. `None` if they are already recorded.
    #[inline]
    pub(in crate::runner) fn take_unparsed(&mut self) -> Option<ToolCall> {
        self.unparsed_call.take()
    }

    /// Adds the arguments to the record: masked, or as a hash if they could not be read.
    #[inline]
    pub(in crate::runner) fn read(&mut self, read: Result<Hydrated, Refused>) -> Result<Hydrated, Stop> {
        let (shown, read) = match read {
            Ok(hydrated) => (Shown::Masked(hydrated.frozen.masked()), Ok(hydrated)),
            Err(refused) => (refused.shown, Err(refused.stop)),
        };
        self.set_shown_arguments(shown);
        read
    }

    /// Adds the tool and the effect that the policy gives it.
    #[inline]
    pub(in crate::runner) fn set_tool(&mut self, entry: &Entry, effect: ToolEffect) {
        self.effect = Some(effect);
        self.note(|record| record.definition_hash = Some(entry.spec.definition_hash));
    }

    #[inline]
    pub(in crate::runner) fn decided(&mut self, decision: Option<Decision>) {
        self.note(|record| record.decision = decision);
    }

    /// Adds the effect key (`once`) of the call.
    pub(in crate::runner) fn set_effect_key(&mut self, key: String) {
        self.note(|record| record.effect_key = Some(key.into()));
    }

    /// Adds a grant that covers the call but does not count, because its decider may no longer decide on such calls.
    pub(in crate::runner) fn voided(&mut self, grant: VoidGrant) {
        self.note(|record| record.void_grant = Some(Box::new(grant)));
    }

    pub(in crate::runner) fn decision(&self) -> Option<&Decision> {
        self.record.as_ref()?.decision.as_ref()
    }

    pub(in crate::runner) fn rule(&self) -> Option<&str> {
        self.decision().map(|decision| &*decision.rule)
    }

    /// Adds to the record the changes that hydration made to the arguments.
    #[inline]
    pub(in crate::runner) fn hydrated(&mut self, treatment: &Treatment, validator: &Arc<str>) {
        self.note(|record| record.validator = treatment.is_validated.then(|| Arc::clone(validator)));
        // Arguments that a person approved are read a second time but not repaired again, so the first repair stays.
        if treatment.repair.is_some() {
            self.plain.get_or_insert_default().repair.clone_from(&treatment.repair);
        }
        if !treatment.changes.is_empty() {
            self.note(|record| record.changes = treatment.changes.iter().map(ArgumentChange::place).collect());
        }
    }

    /// Adds an intervention: a person's edit or answer, or the result of an earlier call.
    pub(in crate::runner) fn intervened(&mut self, intervention: Intervention) {
        self.note(|record| record.intervention = Some(Box::new(intervention)));
    }

    #[inline]
    pub(in crate::runner) fn intervention(&self) -> Option<Box<Intervention>> {
        self.record.as_ref()?.intervention.clone()
    }

    /// Whether a part of the record is shown as a digest.
    pub(in crate::runner) const fn has_digests(&self) -> bool {
        self.plain.is_some() || self.unparsed_call.is_some()
    }

    pub(in crate::runner) fn repair(&self, digests: &Digests) -> Option<RecordedRepair> {
        match self.plain.as_ref().and_then(|plain| plain.repair.as_deref()) {
            Some(RepairUse { repairer, before, after }) => {
                let (before, after) = (digests.of(*before), digests.of(*after));
                Some(RecordedRepair { repairer: repairer.clone(), before, after })
            }
            None => self.record.as_ref()?.repair.as_deref().cloned(),
        }
    }

    #[inline]
    fn note(&mut self, note: impl FnOnce(&mut ToolInvocationRecord)) {
        if let Some(record) = &mut self.record {
            note(record);
        }
    }

    /// Copies the arguments and the texts from the stored document of a waiting call.
    pub(in crate::runner) fn copy_from_pending(&mut self, pending: &PendingCall) {
        self.set_shown_arguments(Shown::Masked(pending.shown_arguments.clone()));
        self.set_explanation(pending);
    }

    /// Adds the texts that a person reads, for a call that is about to wait.
    pub(in crate::runner) fn set_explanation(&mut self, pending: &PendingCall) {
        let (summary, changes, names) = pending.decided_explanation();
        let explanation =
            ApprovalTexts { summary: summary.map(str::to_owned), changes: changes.to_vec(), names: names.to_vec() };
        self.explanation = Some(Box::new(explanation));
    }

    /// Returns the texts that a person reads. `None` unless the call is about to wait.
    pub(in crate::runner) fn explanation(&self) -> Option<&ApprovalTexts> {
        self.explanation.as_deref()
    }

    /// Returns the arguments as events show them.
    pub(in crate::runner) fn masked(&self) -> Option<&JsonText> {
        match self.record.as_deref() {
            Some(ToolInvocationRecord { arguments: RecordedArguments::Masked(arguments), .. }) => Some(arguments),
            Some(_) => None,
            None => self.shown.as_ref(),
        }
    }

    /// Returns the arguments as the record shows them. `None` after [`take_record`](Self::take_record).
    pub(in crate::runner) fn recorded_arguments(&self, digests: &Digests) -> Option<RecordedArguments> {
        match self.unread() {
            Some(unread) => Some(unread.recorded(digests)),
            None => self.record.as_ref().map(|record| record.arguments.clone()),
        }
    }

    /// Returns the hash of the arguments, if they were not or could not be read.
    fn unread(&self) -> Option<Shown> {
        match &self.unparsed_call {
            Some(call) => Some(Shown::unread(call.arguments())),
            None => self.plain.as_ref()?.unread.map(|(length, hash)| Shown::Unread(length, hash)),
        }
    }

    /// Returns the record to write if the process dies before the call ends. `None` if the call already has a record.
    pub(in crate::runner) fn lost_record(&self, digests: &Digests) -> Option<ToolInvocationRecord> {
        let mut stop = Stop::new(Outcome::OutcomeUnknown);
        stop.cause = Some(Cause::Lost);
        let result = stop.result(self.id.clone(), true);
        let mut lost = Self { executed: true, ..self.clone() };
        lost.take_record(digests, false, &result, Some(&stop), None).map(|record| *record)
    }

    /// Returns the record, once. `ended_at` is `None` while the call is open; `has_sink` is `true` if an event sink is
    /// registered.
    #[inline]
    pub(in crate::runner) fn take_record(
        &mut self,
        digests: &Digests,
        has_sink: bool,
        result: &ToolExecResult,
        stop: Option<&Stop>,
        ended_at: Option<Timestamp>,
    ) -> Option<Box<ToolInvocationRecord>> {
        let plain = if self.has_digests() { Some((self.unread(), self.repair(digests))) } else { None };
        let mut record = self.record.take()?;
        if let Some((unread, repair)) = plain {
            self.unparsed_call = None;
            if let Some(unread) = unread {
                record.arguments = unread.recorded(digests);
            }
            if let Some(repair) = repair {
                record.repair = Some(Box::new(repair));
            }
        }
        if has_sink && let RecordedArguments::Masked(arguments) = &record.arguments {
            self.shown = Some(arguments.clone());
        }
        let error = result.error();
        record.result = result.value().cloned();
        record.left_out = result.left_out();
        record.media.extend(result.media().iter().map(Into::into));
        record.outcome = result.outcome();
        record.cause = stop.and_then(|stop| stop.cause);
        if let Some(error) = error {
            record.tool_code.clone_from(&error.tool_code);
            record.safe_message = Some(error.safe_message.clone());
            record.violations = error.errors.iter().map(Violation::recorded).collect();
        }
        record.executed = self.executed;
        record.ended_at = ended_at;
        Some(record)
    }
}
