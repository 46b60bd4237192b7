//! The state of a conversation: the history, and the calls of the last turn while any of them has no result.

use serde::{Deserialize, Serialize};
use tracing::Span;

use crate::agent::history::History;
use crate::agent::typed::Typed;
use crate::agent::{ModelTurn, WaitingCall};
use crate::call::{CallId, Cause, Outcome, Question, Suspension, ToolCall, ToolExecResult, Violation};
use crate::runner::Run;
use crate::tool::{Hash, ToolEffect};
use crate::wire::history::{Missing, ResultMessage, repair};
use crate::wire::{FinishReason, Message, RequestSettings, WireError};

/// The state of a conversation.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::agent) struct ConversationState {
    pub(in crate::agent) history: History,
    /// The calls of the last turn, in order, while any of them has no result.
    pub(in crate::agent) open: Vec<Slot>,
    /// The model's last answer, until it has been handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) answer: Option<LastAnswer>,
    /// The settings of the last message of the user.
    #[serde(default)]
    pub(in crate::agent) settings: RequestSettings,
    /// The type of the answer to that message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) typed: Option<Typed>,
    /// The number of requests to the model since the last message of the user, including requests without an answer.
    pub(in crate::agent) asked: u32,
    /// The number of turns before that message.
    #[serde(default)]
    pub(in crate::agent) earlier_turns: usize,
    pub(in crate::agent) turns: Vec<ModelTurn>,
    /// The version under which the first turn was taken. `None` before the first turn, and for conversations of earlier
    /// releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) version: Option<Hash>,
}

impl ConversationState {
    /// Returns the whole history, with a result for each call.
    pub(in crate::agent) fn history(&self) -> Vec<Message> {
        let settled = self.open.iter().filter(|slot| matches!(slot.progress, CallState::Done(_)));
        let settled = settled.map(|slot| Message::Result(slot.message()));
        let all: Vec<_> = self.history.messages().iter().cloned().chain(settled).collect();
        repair(&all, |id| {
            let open = self.open.iter().find(|slot| slot.id == *id);
            open.map_or(Missing::OutcomeUnknown, Slot::missing)
        })
    }

    pub(in crate::agent) fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        self.open.iter().filter_map(Slot::waiting)
    }

    /// Sets the progress of a call and returns the previous one.
    pub(in crate::agent) fn set(&mut self, at: usize, progress: CallState) -> Option<CallState> {
        self.open.get_mut(at).map(|slot| {
            slot.call = None;
            std::mem::replace(&mut slot.progress, progress)
        })
    }

    /// Notes that a call is handed to the gate.
    pub(in crate::agent) fn hand_over(&mut self, at: usize) {
        if let Some(slot) = self.open.get_mut(at) {
            (slot.call, slot.progress) = (None, CallState::Running);
        }
    }

    /// Takes the gate's result of a call, for the history and for the summary of the turn.
    pub(in crate::agent) fn take(&mut self, at: usize, result: &ToolExecResult) {
        if let Some(slot) = self.open.get_mut(at) {
            slot.take(result);
            self.account(at, result.outcome());
        }
    }

    /// Ends a call that will get no result: with the known result from another process, or with a placeholder.
    pub(in crate::agent) fn close_without_result(&mut self, at: usize) {
        let Some(slot) = self.open.get_mut(at) else { return };
        if let Some(known) = slot.known.take() {
            return self.take(at, &known);
        }
        let outcome = match slot.missing() {
            Missing::Cancelled => Outcome::Cancelled,
            Missing::OutcomeUnknown => Outcome::OutcomeUnknown,
        };
        (slot.call, slot.progress) = (None, CallState::Done(slot.message()));
        self.account(at, outcome);
    }

    /// Ends a call that was not handed to the gate, so that it never runs.
    pub(in crate::agent) fn drop_queued(&mut self, at: usize) {
        if self.open.get(at).is_some_and(|slot| matches!(slot.progress, CallState::Queued)) {
            self.close_without_result(at);
        }
    }

    /// Marks the calls as possibly begun in another process, because a process can die before it saves their progress.
    pub(in crate::agent) fn forget_calls(&mut self) {
        for slot in &mut self.open {
            (slot.fresh, slot.is_new, slot.known) = (false, false, None);
        }
    }

    /// Adds the results of the turn to the history, in call order.
    pub(in crate::agent) fn close(&mut self) {
        for slot in std::mem::take(&mut self.open) {
            self.history.push(Message::Result(slot.message()));
        }
    }

    /// Sets the outcome in the turn's summary. The open calls have the order of the calls in the last turn.
    fn account(&mut self, at: usize, outcome: Outcome) {
        if let Some(call) = self.turns.last_mut().and_then(|turn| turn.calls.get_mut(at)) {
            call.outcome = Some(outcome);
        }
    }
}

/// The model's last answer, and the action once its calls have results. It is kept until new input arrives, so that the
/// same end can be returned again.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::agent) struct LastAnswer {
    pub(in crate::agent) then: AfterAnswer,
    /// The model's text, possibly incomplete.
    pub(in crate::agent) text: String,
    /// The parent of the spans of the calls. `None` after a restore.
    #[serde(skip)]
    pub(in crate::agent) span: Option<Span>,
}

impl LastAnswer {
    /// Whether the request ends once the calls have results.
    pub(in crate::agent) const fn is_end(&self) -> bool {
        !matches!(self.then, AfterAnswer::Continue)
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::agent) enum AfterAnswer {
    /// The model reads the results of its calls.
    Continue,
    Answered,
    /// The model repeated a mistake too often, so the user gets a question about the arguments.
    AskUser,
    Empty,
    Invalid(Vec<Violation>),
    Incomplete {
        finish: FinishReason,
        error: Option<WireError>,
    },
}

/// A call of the last turn.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::agent) struct Slot {
    pub(in crate::agent) id: CallId,
    pub(in crate::agent) name: String,
    /// The tool's effect by the policy's classification. `None` if there is no such tool.
    effect: Option<ToolEffect>,
    /// The call for the gate, until it is handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<ToolCall>,
    /// Whether the store need not be read: only this conversation can have handed the call to the gate, or the store
    /// was read.
    #[serde(skip)]
    pub(in crate::agent) fresh: bool,
    /// The result from another process that handed the call to the gate.
    #[serde(skip)]
    pub(in crate::agent) known: Option<ToolExecResult>,
    /// Whether only this process had the call, or the store was read and has nothing about it.
    #[serde(skip)]
    pub(in crate::agent) is_new: bool,
    pub(in crate::agent) progress: CallState,
}

/// A call for the gate.
pub(in crate::agent) struct ToGate {
    pub(in crate::agent) call: ToolCall,
    /// The result from another process, if it handed the call to its gate.
    pub(in crate::agent) known: Option<ToolExecResult>,
    /// Whether no other process can have handed the call to its gate.
    pub(in crate::agent) is_new: bool,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::agent) enum CallState {
    /// Waits for the calls before it, and was not handed to the gate yet.
    Queued,
    /// Handed to the gate. Unchanged after a dropped future or a killed process.
    Running,
    Waiting(Box<WaitingCall>),
    Done(ResultMessage),
}

impl Slot {
    pub(in crate::agent) fn queued(run: &Run, call: ToolCall) -> Self {
        let (id, name) = (call.id.clone(), call.name.clone());
        Self {
            effect: run.effect_of(&name),
            id,
            name,
            call: Some(call),
            fresh: true,
            known: None,
            is_new: true,
            progress: CallState::Queued,
        }
    }

    /// Returns the call, if it was not handed to the gate yet.
    pub(in crate::agent) fn queued_call(&self) -> Option<&ToolCall> {
        self.call.as_ref().filter(|_| matches!(self.progress, CallState::Queued))
    }

    /// Returns the call for the gate.
    pub(in crate::agent) fn to_gate(&self) -> Option<ToGate> {
        self.queued_call().map(|call| ToGate { call: call.clone(), known: self.known.clone(), is_new: self.is_new })
    }

    pub(in crate::agent) fn waiting(&self) -> Option<&WaitingCall> {
        match &self.progress {
            CallState::Waiting(call) => Some(call),
            _ => None,
        }
    }

    fn take(&mut self, result: &ToolExecResult) {
        self.call = None;
        let suspension = match result.outcome() {
            Outcome::ClientRequired => Suspension::Client,
            Outcome::ApprovalRequired => Suspension::Approval,
            _ => {
                self.progress = CallState::Done(result.into());
                return;
            }
        };
        let question = result.question().cloned().unwrap_or_else(|| Question::unknown(result.call_id()));
        let call = WaitingCall::new(question, self.name.clone(), suspension, result.value().cloned());
        self.progress = CallState::Waiting(Box::new(call));
    }

    /// Returns the kind of the placeholder result for a call without a result. Only a call that never reached the gate,
    /// or whose tool has no effect, can be repeated without harm. A client may have executed a call that was sent to
    /// it.
    pub(in crate::agent) fn missing(&self) -> Missing {
        let begun = match &self.progress {
            CallState::Running => true,
            CallState::Waiting(call) => call.suspension == Suspension::Client,
            // The previous process may have handed the call to the gate.
            CallState::Queued => !self.is_new,
            CallState::Done(_) => false,
        };
        match self.effect.map(|effect| Cause::Cancelled.outcome(effect)) {
            Some(Outcome::OutcomeUnknown) if begun => Missing::OutcomeUnknown,
            _ => Missing::Cancelled,
        }
    }

    /// Returns the result for the history: the call's own, or the placeholder.
    pub(in crate::agent) fn message(&self) -> ResultMessage {
        match &self.progress {
            CallState::Done(result) => result.clone(),
            CallState::Queued | CallState::Running | CallState::Waiting(_) => {
                ResultMessage::missing(self.id.clone(), self.missing())
            }
        }
    }
}
