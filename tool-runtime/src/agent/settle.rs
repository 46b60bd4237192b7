//! Calls of the last turn that have no result yet: those that wait, and those that were interrupted.

use crate::agent::state::{Progress, State};
use crate::agent::{ClientAnswer, Conversation, WaitingCall};
use crate::call::{CallId, Outcome, SafeError};
use crate::runner::{ApprovalDecision, ResumeError, Run};
use crate::store::PendingCall;

/// What becomes of a call that waits.
pub(super) enum Action {
    Decide(ApprovalDecision),
    Answer(ClientAnswer),
    Abandon,
}

impl Conversation {
    /// Finishes a call that waits. One that was finished elsewhere gets the result of its record.
    ///
    /// The call counts as begun while this runs, so that the history after a dropped future never says that it did not
    /// run. Returns why the action did not fit; the call then waits for another one.
    pub(super) async fn act(&mut self, id: &CallId, action: Action) -> Result<Option<SafeError>, ResumeError> {
        let Some(at) = self.state.open.iter().position(|slot| slot.id == *id && slot.waiting().is_some()) else {
            return Ok(None);
        };
        let mut before = self.state.set(at, Progress::Running);
        let result = match action {
            Action::Decide(decision) => self.run.resume(id.as_str(), decision).await,
            Action::Answer(ClientAnswer::Value { json, .. }) => self.run.client_result(id.as_str(), &json).await,
            Action::Answer(ClientAnswer::Failed { .. }) => self.run.client_failed(id.as_str()).await,
            Action::Abandon => self.run.abandon(id.as_str()).await,
        };
        match result {
            // What was given does not fit, or the run does not: the call still waits.
            Ok(result) if result.outcome() == Outcome::ApprovalMismatch => {
                if let (Some(Progress::Waiting(call)), Some(error)) = (&mut before, result.error()) {
                    call.refused = Some(error.clone());
                }
                if let Some(before) = before {
                    self.state.set(at, before);
                }
                return Ok(result.error().cloned());
            }
            Ok(result) => self.state.take(at, &result),
            Err(ResumeError::NotWaiting(_)) => settle(&self.run, &mut self.state, at).await,
            Err(error) => {
                if let Some(before) = before {
                    self.state.set(at, before);
                }
                return Err(error);
            }
        }
        Ok(None)
    }

    /// Closes the turn before, if it is still open: looks up what was interrupted, and abandons what waits.
    pub(super) async fn abandon(&mut self) -> Result<(), ResumeError> {
        self.look_up().await;
        let waiting: Vec<_> = self.waiting().map(|call| call.id.clone()).collect();
        for id in waiting {
            self.act(&id, Action::Abandon).await?;
        }
        self.state.close();
        Ok(())
    }

    /// Calls whose future was dropped get the result of their record.
    pub(super) async fn look_up(&mut self) {
        look_up(&self.run, &mut self.state).await;
    }

    /// What a person needs for a decision is read from the stored document.
    pub(super) async fn describe(&mut self) {
        for slot in &mut self.state.open {
            let Progress::Waiting(call) = &mut slot.progress else { continue };
            if call.expires_at.is_none()
                && let Ok(Some(pending)) = self.run.pending(&slot.id).await
            {
                describe(call, &pending);
            }
        }
    }
}

fn describe(call: &mut WaitingCall, pending: &PendingCall) {
    call.shown_arguments = Some(pending.shown_arguments.clone());
    call.rule.clone_from(&pending.rule);
    call.expires_at = Some(pending.expires_at);
    if let Some(graph) = &pending.graph {
        call.path = Some(graph.path.clone());
        call.shown_arguments.clone_from(&graph.shown_arguments);
        call.rule.clone_from(&graph.rule);
        call.refused.clone_from(&graph.refused);
    }
}

/// Looks up every call that is neither settled nor waits.
pub(super) async fn look_up(run: &Run, state: &mut State) {
    for at in 0..state.open.len() {
        match state.open.get(at).map(|slot| &slot.progress) {
            Some(Progress::Running) => settle(run, state, at).await,
            Some(Progress::Queued) => state.give_up(at),
            _ => {}
        }
    }
}

/// The result of a call that began, perhaps elsewhere: from its record, from its pending call, or without either.
async fn settle(run: &Run, state: &mut State, at: usize) {
    let Some(slot) = state.open.get(at) else { return };
    let (id, name) = (slot.id.clone(), slot.name.clone());
    if let Ok(Some(result)) = run.recorded(&id).await {
        state.take(at, &result);
    } else if let Ok(Some(pending)) = run.pending(&id).await {
        let mut call = WaitingCall::new(id, name, pending.suspension, pending.prepared.clone());
        describe(&mut call, &pending);
        state.set(at, Progress::Waiting(Box::new(call)));
    } else {
        state.give_up(at);
    }
}
