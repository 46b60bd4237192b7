//! [`Step`]: one step of the loop, so that the result of each step can be saved before the next one begins.

use tracing::Span;

use crate::agent::telemetry::Used;
use crate::agent::turns::execute::{self, Progressed};
use crate::agent::turns::state::{AfterAnswer, CallState, LastAnswer, Slot};
use crate::agent::turns::{Turns, calls};
use crate::agent::{StopReason, TurnOutcome, WaitingCall};
use crate::call::usage::Usage;
use crate::call::{CallId, Event};
use crate::runner::ResumeError;
use crate::runner::ledger::recover;
use crate::store::StoreError;
use crate::wire::Message;

/// The result of one step of a conversation: the model was asked, calls ran, calls wait, or the request ended.
///
/// [`Conversation::step`](crate::agent::Conversation::step) returns it, and has an example.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// The model answered. Its answer is in the history, and none of its calls has begun.
    Asked,
    /// Calls of the answer went through the gate: one call, or adjacent `read_only` calls that ran concurrently.
    Ran,
    /// Calls wait for the client or for a person, in the order of the model. The loop cannot continue until
    /// [`Conversation::accept`](crate::agent::Conversation::accept) takes a decision, an answer or a message.
    Waits(Vec<WaitingCall>),
    /// The request ended, with or without an answer. Never [`TurnOutcome::Waiting`].
    Ended(TurnOutcome),
}

impl Step {
    /// Returns the stable code: `asked`, `ran`, or the code of [`TurnOutcome`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Ran => "ran",
            Self::Waits(calls) => TurnOutcome::waiting_code(calls),
            Self::Ended(ended) => ended.code(),
        }
    }
}

impl Turns {
    /// Chooses the next step, and takes it.
    pub(in crate::agent) async fn advance(&mut self) -> Step {
        if let Err(error) = self.recover().await {
            let reason = StopReason::Unsettled(ResumeError::Store(error));
            return Step::Ended(self.stopped(reason, String::new()));
        }
        // Calls come before the model: a provider refuses a history with a call that has no result.
        if self.run_next().await {
            // Read the approval details now, so that they are saved with this step: a replay must show the same
            // details.
            self.describe().await;
            return Step::Ran;
        }
        match self.conclude().await {
            Some(step) => step,
            None => self.ask_model().await,
        }
    }

    /// Whether the next step would make no progress, because calls wait or the request has ended.
    pub(in crate::agent) fn is_idle(&self) -> bool {
        // A running or queued call is progress, even while other calls wait.
        let handed = |slot: &Slot| matches!(slot.progress, CallState::Running | CallState::Queued);
        if self.state.open.iter().any(handed) {
            return false;
        }
        if self.state.waiting().next().is_some() {
            return true;
        }
        match &self.state.answer {
            // Such a step calls neither the model nor a tool. At most it adds the request for clarification.
            Some(answer) if answer.is_end() || self.run.should_end_turn() => true,
            _ => self.must_not_ask().is_some(),
        }
    }

    /// Returns the name of the next unit of work (see [`Durable`](crate::agent::Durable)), and whether calls run in it.
    /// A repeated step has the same name.
    pub(in crate::agent) fn next_unit(&self) -> (String, bool) {
        let turns = self.state.turns.len();
        match self.state.open.iter().position(|slot| matches!(slot.progress, CallState::Running | CallState::Queued)) {
            Some(at) => (format!("turn {turns}, from call {}", at + 1), true),
            None => (format!("turn {}", turns + 1), false),
        }
    }

    /// Reads the waiting calls again: another process may have decided them. Returns whether any call still runs in
    /// another process.
    pub(in crate::agent) async fn refresh(&mut self) -> Result<bool, StoreError> {
        let running = self.read_waiting().await?;
        let waits = |id: &CallId| self.state.waiting().any(|call| call.id == *id);
        // Close calls of dead processes that the conversation no longer contains: the model has read that their outcome
        // is unknown.
        recover::close_others(&self.run, waits).await?;
        Ok(running)
    }

    /// Reads the waiting calls again. Returns whether another process decided a call that has ended since.
    pub(in crate::agent) async fn was_decided(&mut self) -> Result<bool, StoreError> {
        let waiting = self.state.waiting().count();
        self.read_waiting().await?;
        Ok(self.state.waiting().count() < waiting)
    }

    /// Reads the waiting calls again. Returns whether any of them runs in another process.
    async fn read_waiting(&mut self) -> Result<bool, StoreError> {
        let mut running = false;
        for at in 0..self.state.open.len() {
            running |= calls::refresh(&self.run, &mut self.state, at).await?;
        }
        Ok(running)
    }

    /// Updates calls that an earlier process may have started.
    async fn recover(&mut self) -> Result<(), StoreError> {
        for at in 0..self.state.open.len() {
            // By index: the arms below need the whole state.
            let Some(slot) = self.state.open.get(at) else { break };
            match slot.progress {
                CallState::Running => calls::resolve_started(&self.run, &mut self.state, at).await,
                // Without its name and arguments, the call cannot be handed to the gate.
                CallState::Queued if slot.queued_call().is_none() => self.state.close_without_result(at),
                // Another process may have handed over the call after its last save.
                CallState::Queued if !slot.fresh => calls::read_earlier_result(&self.run, &mut self.state, at).await?,
                CallState::Queued | CallState::Waiting(_) | CallState::Done(_) => {}
            }
        }
        Ok(())
    }

    /// Takes the next calls of the turn through the gate. Returns whether there were any.
    async fn run_next(&mut self) -> bool {
        let parallel = self.parallel();
        let queued = self.state.open.iter().enumerate();
        let queued = queued.filter_map(|(at, slot)| slot.to_gate().map(|call| (at, call)));
        let group = execute::group(&self.run, queued, parallel);
        if group.is_empty() {
            return false;
        }
        let (places, calls): (Vec<usize>, Vec<_>) = group.into_iter().unzip();
        // After a restore the turn's span is gone; the calls then belong to the step.
        let span = self.state.answer.as_ref().and_then(|answer| answer.span.clone()).unwrap_or_else(Span::current);
        let state = &mut self.state;
        execute::execute(&self.run, &span, calls, parallel, |progressed| match progressed {
            // Marked as running before the gate runs, so that a dropped future never reports it as not run.
            Progressed::Begun(at) => state.hand_over(places[at]),
            Progressed::Ended(at, result) => state.take(places[at], &result),
        })
        .await;
        true
    }

    /// Returns the step after the last answer, once all of its calls were handed to the gate. `None` if the model is
    /// next.
    async fn conclude(&mut self) -> Option<Step> {
        self.describe().await;
        let calls: Vec<_> = self.state.waiting().cloned().collect();
        if !calls.is_empty() {
            return Some(Step::Waits(calls));
        }
        self.state.close();
        let LastAnswer { then, text, .. } = self.state.answer.clone()?;
        let ended = match then {
            AfterAnswer::Continue => {
                // Without a request for clarification `?` returns `None`: the model is next.
                self.state.answer = None;
                self.ask_user(self.run.clarification()?)
            }
            AfterAnswer::AskUser => self.stopped(StopReason::AskUser, text),
            AfterAnswer::Answered => TurnOutcome::Answered { text },
            AfterAnswer::Empty => self.stopped(StopReason::EmptyAnswer, text),
            AfterAnswer::Invalid(violations) => self.stopped(StopReason::InvalidAnswer(violations), text),
            AfterAnswer::Incomplete { finish, error } => {
                let detail = error.as_ref().and_then(|error| error.message.clone());
                let reason = StopReason::Incomplete { finish, error };
                if let Some(detail) = detail {
                    self.run.report("the model's answer broke off", reason.code(), &detail);
                }
                self.stopped(reason, text)
            }
        };
        Some(Step::Ended(ended))
    }

    /// Asks the user in place of the model: the request for clarification is an answer of the conversation, in its
    /// history and its events.
    fn ask_user(&mut self, clarification: String) -> TurnOutcome {
        self.state.history.push(Message::assistant(clarification.clone()));
        self.run.emit(Event::TextDelta { text: clarification.clone() });
        self.state.answer = Some(LastAnswer { then: AfterAnswer::AskUser, text: clarification.clone(), span: None });
        self.stopped(StopReason::AskUser, clarification)
    }

    /// Asks the model, unless a limit forbids it.
    async fn ask_model(&mut self) -> Step {
        let stop = match self.must_not_ask() {
            Some(stop) => Some(stop),
            None => self.exhausted().await,
        };
        let stop = match stop {
            Some(stop) => Some(stop),
            None => {
                // Before the request, so that a failed request is counted too.
                self.state.asked += 1;
                self.request().await.err()
            }
        };
        stop.map_or(Step::Asked, |reason| Step::Ended(self.stopped(reason, String::new())))
    }

    /// Returns the reason why the model must not be asked again, if the conversation itself has one.
    fn must_not_ask(&self) -> Option<StopReason> {
        if self.run.cancellation().is_cancelled() {
            return Some(StopReason::Cancelled);
        }
        (self.state.asked >= self.agent.max_turns).then_some(StopReason::TurnLimit)
    }

    /// Returns the budget that is used up. If the budgets cannot be read, returns the error of the store.
    async fn exhausted(&self) -> Option<StopReason> {
        match self.run.exhausted().await {
            Ok(exceeded) => exceeded.map(StopReason::Budget),
            Err(error) => Some(StopReason::Unsettled(ResumeError::Store(error))),
        }
    }

    /// Returns the tokens of the last turn, as its provider counted them.
    pub(in crate::agent) fn last_usage(&self) -> Option<Usage> {
        self.state.turns.last().and_then(|turn| turn.usage).filter(|usage| !usage.estimated)
    }

    /// Takes steps until calls wait or the request ends.
    pub(in crate::agent) async fn drive(&mut self) -> TurnOutcome {
        let (mut used, mut ran) = (Used::default(), false);
        loop {
            match self.advance().await {
                Step::Asked => used.add(self.last_usage()),
                Step::Ran => ran = true,
                // Another process may have decided a call or replaced its question since it was read. If the store
                // cannot be read now, the next decision reads it.
                Step::Waits(_) if !ran && self.was_decided().await.unwrap_or(false) => {}
                // `was_decided` can have refreshed the questions, so the calls are read from the state.
                Step::Waits(_) => return TurnOutcome::Waiting { calls: self.state.waiting().cloned().collect() },
                Step::Ended(ended) => return ended,
            }
        }
    }
}
