//! [`OpenCall`]: the guard that gives every call exactly one record and one terminal event, dropped or not.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::call::{
    CallId, Cause, Decision, Delivered, Event, Failed, Outcome, RecordedArguments, SHOWN_BYTES, SafeError, ToolCall,
    ToolExecResult, ToolInvocationRecord, shown,
};
use crate::hydrate::Hydrated;
use crate::json;
use crate::runner::Run;
use crate::runner::stop::{Ended, Stop};
use crate::runner::telemetry;
use crate::tool::{Hash, ToolEffect};

/// A call on its way through the gate. Dropping it before its end records it as cancelled.
pub(super) struct OpenCall {
    pub(super) run: Run,
    /// The id towards the model.
    id: CallId,
    /// The id of record and events: the same, unless that one cannot be used.
    record_id: CallId,
    name: String,
    /// The id was taken before, so nothing may run under it.
    pub(super) repeated: bool,
    started_at: Timestamp,
    started: Instant,
    arguments: Arguments,
    pub(super) effect: Option<ToolEffect>,
    pub(super) definition_hash: Option<Hash>,
    pub(super) decision: Option<Decision>,
    pub(super) validator: Option<String>,
    pub(super) repair: Option<String>,
    /// The tool began to run.
    pub(super) executed: bool,
    phase: Phase,
}

/// What the record will tell of the arguments.
enum Arguments {
    /// Nobody looked at them yet. A digest is made only when nobody ever does.
    Raw(ToolCall),
    Recorded(RecordedArguments),
    Taken,
}

enum Phase {
    Running,
    /// The record is written, the event is not yet.
    Recorded(Box<ToolExecResult>),
    Announced,
}

impl OpenCall {
    /// Announces the start, before anything is checked.
    pub(super) fn start(run: Run, call: ToolCall) -> Self {
        let mut open = Self::announced(run, &call);
        open.arguments = Arguments::Raw(call);
        open
    }

    /// Announces the start of a call that was hydrated before.
    pub(super) fn start_hydrated(run: Run, hydrated: &Hydrated) -> Self {
        let mut open = Self::announced(run, hydrated.call());
        open.read_arguments(Arc::clone(&hydrated.masked));
        open
    }

    fn announced(run: Run, call: &ToolCall) -> Self {
        let fits = call.id.as_str().len() <= SHOWN_BYTES;
        let repeated = fits && !run.state().take_id(&call.id);
        let record_id = if fits && !repeated { call.id.clone() } else { CallId::generate() };
        let open = Self::new(run, call.id.clone(), record_id, shown(&call.name), repeated);
        if open.run.is_heard() {
            open.run.emit(Event::ToolCallStart { id: open.record_id.clone(), name: open.name.clone() });
        }
        open
    }

    /// The call, on its way to hydration. Until [`read_arguments`](Self::read_arguments) or
    /// [`unread`](Self::unread) says what became of its arguments, nothing may be awaited.
    pub(super) fn take_call(&mut self) -> Option<ToolCall> {
        match std::mem::replace(&mut self.arguments, Arguments::Taken) {
            Arguments::Raw(call) => Some(call),
            other => {
                self.arguments = other;
                None
            }
        }
    }

    /// The arguments could not be read: the record tells their length and digest.
    pub(super) fn unread(&mut self, raw: &str) {
        self.arguments =
            Arguments::Recorded(RecordedArguments::Unread { length: raw.len(), sha256: json::digest(raw) });
    }

    /// Goes on with a suspended call: its start was announced when it came in.
    pub(super) fn resume(run: Run, record: &ToolInvocationRecord) -> Self {
        let mut open =
            Self::new(run, record.tool_call_id.clone(), record.tool_call_id.clone(), record.name.clone(), false);
        open.arguments = Arguments::Recorded(record.arguments.clone());
        open.started_at = record.started_at;
        open.definition_hash = record.definition_hash;
        open.decision.clone_from(&record.decision);
        open.validator.clone_from(&record.validator);
        open.repair.clone_from(&record.repair);
        open
    }

    fn new(run: Run, id: CallId, record_id: CallId, name: String, repeated: bool) -> Self {
        Self {
            id,
            record_id,
            name,
            repeated,
            started_at: run.0.shared.clock.now(),
            started: Instant::now(),
            arguments: Arguments::Taken,
            effect: None,
            definition_hash: None,
            decision: None,
            validator: None,
            repair: None,
            executed: false,
            phase: Phase::Running,
            run,
        }
    }

    /// The id of the call's record.
    pub(super) fn record_id(&self) -> &CallId {
        &self.record_id
    }

    /// The arguments could be read: from now on the record shows them, masked.
    pub(super) fn read_arguments(&mut self, masked: Arc<RawValue>) {
        self.arguments = Arguments::Recorded(RecordedArguments::Masked(masked));
    }

    /// Writes the record, then the terminal event, then hands out the result.
    pub(super) async fn finish(mut self, ended: Result<Ended, Stop>) -> ToolExecResult {
        let result = self.result(&ended);
        let cause = ended.as_ref().err().and_then(|stop| stop.cause);
        let record = self.record(&result, cause);
        let suspended = result.outcome().is_suspension();
        let receipt = self.run.0.shared.store.put(record);
        self.phase = Phase::Recorded(Box::new(result.clone()));
        if let Err(error) = receipt.await {
            telemetry::record_lost(&self.run, &self.name, &self.record_id, &error);
        }
        self.announce(&result);
        if !suspended {
            self.account(&result);
        }
        if let Err(stop) = &ended {
            telemetry::contained(&self.run, &self.name, &self.record_id, stop);
        }
        result
    }

    fn result(&self, ended: &Result<Ended, Stop>) -> ToolExecResult {
        let (id, executed) = (self.id.clone(), self.executed);
        match ended {
            Ok(ended) => {
                let (shown, model) = (Arc::clone(&ended.shown), ended.model.clone());
                ToolExecResult::delivered(id, executed, Delivered { shown, model, warning: ended.warning })
            }
            Err(stop) if stop.outcome.is_suspension() => {
                ToolExecResult::suspended(id, stop.outcome, stop.prepared.clone())
            }
            Err(stop) => {
                let error = SafeError {
                    error_code: stop.outcome,
                    tool_code: stop.tool_code.clone(),
                    safe_message: stop.message.to_string(),
                    errors: stop.errors.clone(),
                };
                let (concealed, detail) = (stop.concealed, stop.detail.clone());
                ToolExecResult::failed(id, executed, Failed { error, concealed, detail })
            }
        }
    }

    fn record(&self, result: &ToolExecResult, cause: Option<Cause>) -> ToolInvocationRecord {
        let suspended = result.outcome().is_suspension();
        let options = &self.run.0.options;
        ToolInvocationRecord {
            tool_call_id: self.record_id.clone(),
            name: self.name.clone(),
            definition_hash: self.definition_hash,
            arguments: self.recorded_arguments(),
            result: result.shared_value().cloned(),
            outcome: result.outcome(),
            cause,
            tool_code: result.error().and_then(|error| error.tool_code.clone()),
            safe_message: result.error().map(|error| error.safe_message.clone()),
            executed: self.executed,
            started_at: self.started_at,
            ended_at: (!suspended).then(|| self.run.0.shared.clock.now()),
            run_id: Arc::clone(&self.run.0.id),
            session_id: options.session.clone(),
            conversation_id: options.conversation.clone(),
            principal: options.principal.clone(),
            caller: options.caller.clone(),
            decision: self.decision.clone(),
            validator: self.validator.clone(),
            repair: self.repair.clone(),
            previous: None,
            hash: None,
        }
    }

    fn recorded_arguments(&self) -> RecordedArguments {
        let raw = match &self.arguments {
            Arguments::Recorded(recorded) => return recorded.clone(),
            Arguments::Raw(call) => call.arguments.as_str(),
            Arguments::Taken => "",
        };
        RecordedArguments::Unread { length: raw.len(), sha256: json::digest(raw) }
    }

    fn announce(&mut self, result: &ToolExecResult) {
        self.phase = Phase::Announced;
        if !self.run.is_heard() {
            return;
        }
        let (id, name, outcome, value) =
            (self.record_id.clone(), self.name.clone(), result.outcome(), result.shared_value().cloned());
        let arguments = match &self.arguments {
            Arguments::Recorded(RecordedArguments::Masked(arguments)) => Some(Arc::clone(arguments)),
            _ => None,
        };
        self.run.emit(if outcome.is_suspension() {
            Event::ToolCallSuspended { id, name, arguments, outcome, prepared: value }
        } else {
            Event::ToolCallResult {
                id,
                name,
                arguments,
                outcome,
                value,
                error: result.error().cloned(),
                executed: result.executed(),
            }
        });
    }

    fn account(&self, result: &ToolExecResult) {
        let latency = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let bytes = result.value().map_or(0, |value| value.get().len());
        self.run.state().account(result.outcome(), latency, bytes);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let result = match std::mem::replace(&mut self.phase, Phase::Announced) {
            Phase::Announced => return,
            Phase::Recorded(result) => *result,
            Phase::Running => {
                let outcome = match self.effect {
                    Some(effect) if self.executed => Cause::Cancelled.outcome(effect),
                    _ => Outcome::Cancelled,
                };
                let result = self.result(&Err(Stop::new(outcome)));
                drop(self.run.0.shared.store.put(self.record(&result, Some(Cause::Cancelled))));
                result
            }
        };
        self.announce(&result);
        if !result.outcome().is_suspension() {
            self.account(&result);
        }
    }
}
