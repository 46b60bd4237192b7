//! [`Draft`]: what the stages find out for the record of a call.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{
    ArgumentChange, CallId, Caller, Cause, Decision, JsonText, NamedArgument, Outcome, RecordedArguments, RepairUse,
    ToolCall, ToolExecResult, ToolInvocationRecord, shown,
};
use crate::catalog::Entry;
use crate::hydrate::{Hydrated, Treatment};
use crate::runner::Run;
use crate::runner::ending::Stop;
use crate::store::PendingCall;
use crate::tool::{Hash, ToolEffect};

/// The record of a call while the call is open.
#[derive(Clone)]
pub(super) struct Draft {
    /// The call's own id, unless that one cannot be used.
    pub(super) id: CallId,
    called: Called,
    pub(super) started_at: Timestamp,
    arguments: Arguments,
    effect: Option<ToolEffect>,
    definition_hash: Option<Hash>,
    decision: Option<Decision>,
    validator: Option<Arc<str>>,
    repair: Option<Box<RepairUse>>,
    /// The tool began to run, here or at a client.
    executed: bool,
    /// Where the call came from when it was suspended; `None` if it comes from the run as it is.
    origin: Option<Box<Origin>>,
    /// What a person reads of the call while it waits.
    asked: Option<Box<Asked>>,
}

/// Where a call comes from.
#[derive(Clone)]
struct Origin {
    session: Option<Arc<str>>,
    conversation: Option<Arc<str>>,
    caller: Caller,
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
}

/// What a person reads of a call that waits, in addition to its arguments.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) summary: Option<String>,
    pub(super) changes: Vec<ArgumentChange>,
    pub(super) names: Vec<NamedArgument>,
}

/// What the record will show of the arguments.
#[derive(Clone)]
pub(super) enum Arguments {
    /// Not read yet. They are digested only if they never are.
    Unseen(ToolCall),
    Recorded(RecordedArguments),
}

/// A call that could not be hydrated, and what its record may show of the arguments.
pub(super) struct Refused {
    pub(super) stop: Stop,
    pub(super) shown: RecordedArguments,
}

impl Draft {
    #[inline]
    pub(super) fn new(run: &Run, id: CallId, called: Called, arguments: Arguments) -> Self {
        Self {
            id,
            called,
            started_at: run.shared().clock.now(),
            arguments,
            effect: None,
            definition_hash: None,
            decision: None,
            validator: None,
            repair: None,
            executed: false,
            origin: None,
            asked: None,
        }
    }

    /// The draft of a suspended call, with the origin that it had when it was suspended.
    pub(super) fn reopened(record: ToolInvocationRecord) -> Self {
        let ToolInvocationRecord { session_id: session, conversation_id: conversation, caller, .. } = record;
        Self {
            id: record.tool_call_id,
            called: Called::Unknown(record.name),
            started_at: record.started_at,
            arguments: Arguments::Recorded(record.arguments),
            effect: None,
            definition_hash: record.definition_hash,
            decision: record.decision,
            validator: record.validator,
            repair: record.repair.map(Box::new),
            executed: false,
            origin: Some(Box::new(Origin { session, conversation, caller })),
            asked: None,
        }
    }

    /// The name as the model wrote it, cut to 128 bytes.
    pub(super) fn name(&self) -> &str {
        self.shared_name()
    }

    fn shared_name(&self) -> &Arc<str> {
        match &self.called {
            Called::Tool(entry) => entry.spec.name.shared(),
            Called::Unknown(name) => name,
        }
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

    /// Takes the call out to be read. `None` if its arguments are recorded already.
    #[inline]
    pub(super) fn take_unseen(&mut self) -> Option<ToolCall> {
        // The placeholder is replaced before anything else happens, see `OpenCall::read`.
        let unread = Arguments::Recorded(RecordedArguments::Unread { length: 0, sha256: Hash([0; 32]) });
        match std::mem::replace(&mut self.arguments, unread) {
            Arguments::Unseen(call) => Some(call),
            recorded @ Arguments::Recorded(_) => {
                self.arguments = recorded;
                None
            }
        }
    }

    /// Takes over what the record may show: the masked arguments, or what is left of them.
    #[inline]
    pub(super) fn read(&mut self, read: Result<Hydrated, Box<Refused>>) -> Result<Hydrated, Stop> {
        let (shown, read) = match read {
            Ok(hydrated) => (RecordedArguments::Masked(hydrated.frozen.masked.clone()), Ok(hydrated)),
            Err(refused) => (refused.shown, Err(refused.stop)),
        };
        self.arguments = Arguments::Recorded(shown);
        read
    }

    /// The tool is known, and how far the policy takes it to reach.
    #[inline]
    pub(super) fn found(&mut self, entry: &Entry, effect: ToolEffect) {
        self.effect = Some(effect);
        self.definition_hash = Some(entry.spec.definition_hash);
    }

    pub(super) fn decided(&mut self, decision: Option<Decision>) {
        self.decision = decision;
    }

    pub(super) const fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    pub(super) fn rule(&self) -> Option<&str> {
        self.decision.as_ref().map(|decision| &*decision.rule)
    }

    /// What was done to the arguments.
    #[inline]
    pub(super) fn hydrated(&mut self, treatment: &Treatment) {
        self.validator.clone_from(&treatment.validator);
        // Arguments that a person approved are read a second time, and need no second repair.
        if treatment.repair.is_some() {
            self.repair.clone_from(&treatment.repair);
        }
    }

    pub(super) fn repair(&self) -> Option<&RepairUse> {
        self.repair.as_deref()
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
        match &self.arguments {
            Arguments::Recorded(RecordedArguments::Masked(arguments)) => Some(arguments),
            _ => None,
        }
    }

    /// What the record shows of the arguments.
    pub(super) fn recorded_arguments(&self) -> RecordedArguments {
        match &self.arguments {
            Arguments::Recorded(recorded) => recorded.clone(),
            Arguments::Unseen(call) => RecordedArguments::unread(call.arguments.as_str()),
        }
    }

    /// The record that the call gets if nobody sees its end.
    pub(super) fn unseen(&self, run: &Run) -> ToolInvocationRecord {
        let mut stop = Stop::new(Outcome::OutcomeUnknown);
        stop.cause = Some(Cause::Lost);
        let result = stop.result(self.id.clone(), true);
        let record = *self.record(run, &result, Some(&stop), None);
        ToolInvocationRecord { executed: true, ..record }
    }

    /// The record. `ended_at` is `None` while the call is open.
    #[inline]
    pub(super) fn record(
        &self,
        run: &Run,
        result: &ToolExecResult,
        stop: Option<&Stop>,
        ended_at: Option<Timestamp>,
    ) -> Box<ToolInvocationRecord> {
        let (outcome, error, options) = (result.outcome(), result.error(), run.options());
        let (session, conversation, caller) = match &self.origin {
            None => (&options.session, &options.conversation, &options.caller),
            Some(origin) => (&origin.session, &origin.conversation, &origin.caller),
        };
        Box::new(ToolInvocationRecord {
            tool_call_id: self.id.clone(),
            name: Arc::clone(self.shared_name()),
            definition_hash: self.definition_hash,
            arguments: self.recorded_arguments(),
            result: result.value().cloned(),
            media: result.media().iter().map(Into::into).collect(),
            outcome,
            cause: stop.and_then(|stop| stop.cause),
            tool_code: error.and_then(|error| error.tool_code.clone()),
            safe_message: error.map(|error| error.safe_message.clone()),
            violations: error.map(|error| error.errors.iter().map(Into::into).collect()).unwrap_or_default(),
            executed: self.executed,
            started_at: self.started_at,
            ended_at,
            run_id: Arc::clone(run.identity()),
            session_id: session.clone(),
            conversation_id: conversation.clone(),
            principal: options.principal.clone(),
            roles: options.roles.clone(),
            attributes: options.attributes.clone(),
            tenant: options.tenant.clone(),
            caller: caller.clone(),
            decision: self.decision.clone(),
            validator: self.validator.clone(),
            repair: self.repair.as_deref().cloned(),
        })
    }
}
