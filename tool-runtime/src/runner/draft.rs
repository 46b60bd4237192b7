//! [`Draft`]: what the stages find out for the record of a call.

mod begun;

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{
    ArgumentChange, CallId, Cause, Decision, JsonText, NamedArgument, Outcome, RecordedArguments, RepairUse, ToolCall,
    ToolExecResult, ToolInvocationRecord, shown,
};
use crate::catalog::Entry;
use crate::hydrate::{Hydrated, Treatment};
use crate::runner::Run;
use crate::runner::ending::Stop;
use crate::store::PendingCall;
use crate::tool::ToolEffect;

/// The record of a call while the call is open: what is found out is written into it, so that its end only has to add
/// what became of the call.
#[derive(Clone)]
pub(super) struct Draft {
    /// The call's own id, unless that one cannot be used.
    pub(super) id: CallId,
    called: Called,
    pub(super) started_at: Timestamp,
    effect: Option<ToolEffect>,
    /// The tool began to run, here or at a client.
    executed: bool,
    /// The call, until its arguments are read. They are digested only if they never are.
    unseen: Option<ToolCall>,
    /// What a person reads of the call while it waits.
    asked: Option<Box<Asked>>,
    /// `None` once it was given away: a call has one.
    record: Option<Box<ToolInvocationRecord>>,
    /// What events show of the arguments after that. `None` if nobody listened then.
    shown: Option<JsonText>,
}

/// What was called. A known tool is shared, and its record shares its name.
#[derive(Clone)]
pub(super) enum Called {
    Tool(Arc<Entry>),
    /// The name as the model wrote it, cut to 128 bytes.
    Unknown(Arc<str>),
}

impl Called {
    #[inline]
    pub(super) fn of(run: &Run, name: &str) -> Self {
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

/// What a person reads of a call that waits, in addition to its arguments.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) summary: Option<String>,
    pub(super) changes: Vec<ArgumentChange>,
    pub(super) names: Vec<NamedArgument>,
}

/// A call that could not be hydrated, and what its record may show of the arguments.
pub(super) struct Refused {
    pub(super) stop: Stop,
    pub(super) shown: RecordedArguments,
}

impl Draft {
    /// The name as the model wrote it, cut to 128 bytes.
    pub(super) fn name(&self) -> &str {
        self.called.name()
    }

    /// The tool, unless the call was suspended before; `None` if there is none of this name.
    pub(super) const fn tool(&self) -> Option<&Arc<Entry>> {
        if let Called::Tool(entry) = &self.called { Some(entry) } else { None }
    }

    /// How far the tool reaches, once it is known.
    pub(super) const fn effect(&self) -> Option<ToolEffect> {
        self.effect
    }

    pub(super) const fn executed(&self) -> bool {
        self.executed
    }

    pub(super) const fn set_executed(&mut self, executed: bool) {
        self.executed = executed;
    }

    /// Keeps the call until its arguments are read.
    #[inline]
    pub(super) fn keep_unseen(&mut self, call: ToolCall) {
        self.unseen = Some(call);
    }

    /// What the record may show of the arguments is known.
    #[inline]
    pub(super) fn shows(&mut self, arguments: RecordedArguments) {
        self.note(|record| record.arguments = arguments);
    }

    /// Takes the call out to be read. `None` if its arguments are recorded already.
    #[inline]
    pub(super) fn take_unseen(&mut self) -> Option<ToolCall> {
        self.unseen.take()
    }

    /// Takes over what the record may show: the masked arguments, or what is left of them.
    #[inline]
    pub(super) fn read(&mut self, read: Result<Hydrated, Refused>) -> Result<Hydrated, Stop> {
        let (shown, read) = match read {
            Ok(hydrated) => (RecordedArguments::Masked(hydrated.frozen.masked()), Ok(hydrated)),
            Err(refused) => (refused.shown, Err(refused.stop)),
        };
        self.shows(shown);
        read
    }

    /// The tool is known, and how far the policy takes it to reach.
    #[inline]
    pub(super) fn found(&mut self, entry: &Entry, effect: ToolEffect) {
        self.effect = Some(effect);
        self.note(|record| record.definition_hash = Some(entry.spec.definition_hash));
    }

    #[inline]
    pub(super) fn decided(&mut self, decision: Option<Decision>) {
        self.note(|record| record.decision = decision);
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.record.as_ref()?.decision.as_ref()
    }

    pub(super) fn rule(&self) -> Option<&str> {
        self.decision().map(|decision| &*decision.rule)
    }

    /// What was done to the arguments.
    #[inline]
    pub(super) fn hydrated(&mut self, treatment: &Treatment, validator: &Arc<str>) {
        self.note(|record| {
            record.validator = treatment.is_validated.then(|| Arc::clone(validator));
            // Arguments that a person approved are read a second time, and need no second repair.
            if treatment.repair.is_some() {
                record.repair.clone_from(&treatment.repair);
            }
        });
    }

    pub(super) fn repair(&self) -> Option<&RepairUse> {
        self.record.as_ref()?.repair.as_deref()
    }

    #[inline]
    fn note(&mut self, note: impl FnOnce(&mut ToolInvocationRecord)) {
        if let Some(record) = &mut self.record {
            note(record);
        }
    }

    /// The call is about to wait.
    pub(super) fn asks(&mut self, pending: &PendingCall) {
        let (summary, changes, names) = pending.decided_explanation();
        let asked = Asked { summary: summary.map(str::to_owned), changes: changes.to_vec(), names: names.to_vec() };
        self.asked = Some(Box::new(asked));
    }

    /// What a person reads of the call. `None` unless it is about to wait.
    pub(super) fn asked(&self) -> Option<&Asked> {
        self.asked.as_deref()
    }

    /// The arguments as events show them.
    pub(super) fn masked(&self) -> Option<&JsonText> {
        match self.record.as_deref() {
            Some(ToolInvocationRecord { arguments: RecordedArguments::Masked(arguments), .. }) => Some(arguments),
            Some(_) => None,
            None => self.shown.as_ref(),
        }
    }

    /// What the record shows of the arguments. `None` once it was given away.
    pub(super) fn recorded_arguments(&self) -> Option<RecordedArguments> {
        match &self.unseen {
            Some(call) => Some(RecordedArguments::unread(call.arguments.as_str())),
            None => self.record.as_ref().map(|record| record.arguments.clone()),
        }
    }

    /// The record that the call gets if nobody sees its end. `None` if it has one already.
    pub(super) fn unseen(&self) -> Option<ToolInvocationRecord> {
        let mut stop = Stop::new(Outcome::OutcomeUnknown);
        stop.cause = Some(Cause::Lost);
        let result = stop.result(self.id.clone(), true);
        let mut unseen = Self { executed: true, ..self.clone() };
        unseen.give(false, &result, Some(&stop), None).map(|record| *record)
    }

    /// Gives the record away, once. `ended_at` is `None` while the call is open; `is_heard`, if somebody takes the event
    /// that comes after the record.
    #[inline]
    pub(super) fn give(
        &mut self,
        is_heard: bool,
        result: &ToolExecResult,
        stop: Option<&Stop>,
        ended_at: Option<Timestamp>,
    ) -> Option<Box<ToolInvocationRecord>> {
        let mut record = self.record.take()?;
        if let Some(call) = self.unseen.take() {
            record.arguments = RecordedArguments::unread(call.arguments.as_str());
        }
        if is_heard && let RecordedArguments::Masked(arguments) = &record.arguments {
            self.shown = Some(arguments.clone());
        }
        let error = result.error();
        record.result = result.value().cloned();
        record.media.extend(result.media().iter().map(Into::into));
        record.outcome = result.outcome();
        record.cause = stop.and_then(|stop| stop.cause);
        if let Some(error) = error {
            record.tool_code.clone_from(&error.tool_code);
            record.safe_message = Some(error.safe_message.clone());
            record.violations = error.errors.iter().map(Into::into).collect();
        }
        record.executed = self.executed;
        record.ended_at = ended_at;
        Some(record)
    }
}
