//! Handles the calls of the last turn that have no result: waiting calls and interrupted calls.

use jiff::Timestamp;
use tracing::Span;

use crate::agent::turns::Turns;
use crate::agent::turns::state::{CallState, ConversationState, Slot, ToGate};
use crate::agent::{Input, WaitingCall};
use crate::call::{
    CallId, ClientAnswer, Decider, DecisionError, Intervention, Outcome, Question, SafeError, Suspension,
    ToolInvocationRecord,
};
use crate::runner::ledger::recover::{self, Earlier};
use crate::runner::waiting::late;
use crate::runner::{ApprovalDecision, Known, ResumeError, Run, shows};
use crate::store::{PendingCall, StoreError};

/// The action on a waiting call.
pub(in crate::agent) enum Action {
    Decide(Question, ApprovalDecision, Decider),
    Expire(Question),
    Answer(ClientAnswer),
    Abandon,
}

impl Turns {
    /// Finishes a waiting call. A call that another process finished gets the result of its record.
    ///
    /// The state of the call is `Running` during this method, so that the history after a dropped future never reports
    /// it as not run. Returns the mismatch if the action does not fit; the call then still waits.
    pub(in crate::agent) async fn act(
        &mut self,
        id: &CallId,
        action: Action,
    ) -> Result<Option<SafeError>, ResumeError> {
        let Some(at) = self.state.open.iter().position(|slot| slot.id == *id && slot.waiting().is_some()) else {
            return Ok(None);
        };
        let mut before = self.state.set(at, CallState::Running);
        let result = match action {
            Action::Decide(question, decision, decider) => {
                Box::pin(self.run.resume(&question, decision, &decider)).await
            }
            // The client may have executed the call, so its outcome is unknown.
            Action::Expire(question) if is_clients(before.as_ref(), &question) => {
                Box::pin(self.run.abandon(id.as_str())).await
            }
            Action::Expire(question) => Box::pin(self.run.expire(&question)).await,
            Action::Answer(ClientAnswer::Value { json, .. }) => {
                Box::pin(self.run.client_result(id.as_str(), &json)).await
            }
            Action::Answer(ClientAnswer::Failed { .. }) => Box::pin(self.run.client_failed(id.as_str())).await,
            Action::Abandon => Box::pin(self.run.abandon(id.as_str())).await,
        };
        match result {
            // The action does not match the call, or the call no longer fits the run. The call still waits.
            Ok(result) if result.outcome() == Outcome::ApprovalMismatch => {
                if let (Some(CallState::Waiting(call)), Some(error)) = (&mut before, result.error()) {
                    call.refused = Some(error.clone());
                }
                if let Some(before) = before {
                    self.state.set(at, before);
                }
                let mismatch = result.error().and_then(|error| error.mismatch);
                if matches!(mismatch, Some(DecisionError::World | DecisionError::Question)) {
                    ask_again(&self.run, &mut self.state).await?;
                }
                return Ok(result.error().cloned());
            }
            // The call asks a new question now, because an earlier call may have had the effect, and the person has to
            // know this first.
            Err(ResumeError::NotAllowed(DecisionError::Question)) => {
                let error = SafeError::mismatched(DecisionError::Question);
                if let Some(CallState::Waiting(call)) = &mut before {
                    call.refused = Some(error.clone());
                }
                if let Some(before) = before {
                    self.state.set(at, before);
                }
                ask_again(&self.run, &mut self.state).await?;
                return Ok(Some(error));
            }
            Ok(result) => self.state.take(at, &result),
            // The call was decided before, by a process that may have died.
            Err(ResumeError::NotWaiting(_)) => match went_on(&self.run, id, before.as_ref()).await {
                Ok(Some(Some(result))) => self.state.take(at, &result),
                _ => resolve_started(&self.run, &mut self.state, at).await,
            },
            Err(error) => {
                if let Some(before) = before {
                    self.state.set(at, before);
                }
                return Err(error);
            }
        }
        Ok(None)
    }

    /// Removes the decisions and the answers that were carried out before, and reads the results of the decided calls.
    /// The process that carried them out ended before it saved the conversation, so each person decided once.
    pub(in crate::agent) async fn without_repeated(&mut self, mut input: Input) -> Result<Input, StoreError> {
        for by in std::mem::take(&mut input.decisions) {
            match self.is_repeated(input.delivered, &by).await {
                Ok(true) => {}
                Err(error) if input.delivered => return Err(error),
                Ok(false) | Err(_) => {
                    input.decisions.push(by);
                    continue;
                }
            }
            if let Some(at) = self.state.open.iter().position(|slot| slot.id == *by.0.call_id()) {
                refresh(&self.run, &mut self.state, at).await?;
            }
        }
        for answer in std::mem::take(&mut input.answers) {
            let may_repeat = input.delivered && self.state.waiting().all(|call| call.id != *answer.id());
            if !may_repeat || !late::was_answered(&self.run, answer.id()).await? {
                input.answers.push(answer);
            }
        }
        Ok(input)
    }

    /// Whether a decision was carried out before, by another process. A decision that the store does not deliver has to
    /// be on a call that waits only in this conversation. A second edit or answer of one person can have another
    /// content, so its refusal is recorded.
    async fn is_repeated(
        &self,
        delivered: bool,
        (question, decision, decider): &(Question, ApprovalDecision, Decider),
    ) -> Result<bool, StoreError> {
        let is_stale = matches!(decision, ApprovalDecision::Approve | ApprovalDecision::Deny(_))
            && self.state.waiting().any(|call| call.question == *question);
        if !delivered && !is_stale {
            return Ok(false);
        }
        let pending = self.run.pending(question.call_id()).await?;
        let by = (decision.kind(), decider);
        Ok((delivered || pending.is_none()) && late::was_carried_out(&self.run, pending.as_ref(), question, by).await?)
    }

    /// Closes the previous turn if it is still open: looks up the interrupted calls, and abandons the waiting calls.
    pub(in crate::agent) async fn abandon(&mut self) -> Result<(), ResumeError> {
        // A call goes from waiting to begun to recorded. Reads in this order find it in at least one place.
        look_for_waiting(&self.run, &mut self.state).await?;
        look_up(&self.run, &mut self.state).await;
        for at in 0..self.state.open.len() {
            self.finish_in_other_process(at).await.map_err(ResumeError::Store)?;
            self.state.drop_queued(at);
        }
        let waiting: Vec<_> = self.state.waiting().map(|call| call.id.clone()).collect();
        for id in waiting {
            self.act(&id, Action::Abandon).await?;
        }
        self.state.close();
        self.state.answer = None;
        Ok(())
    }

    /// Hands a call that another process began to the gate, which reconciles or repeats it. The rest of the turn does
    /// not run.
    async fn finish_in_other_process(&mut self, at: usize) -> Result<(), StoreError> {
        let is_begun = |slot: &Slot| matches!(slot.progress, CallState::Queued) && slot.known.is_some();
        if !self.state.open.get(at).is_some_and(is_begun) {
            return Ok(());
        }
        read_earlier_result(&self.run, &mut self.state, at).await?;
        if let Some(ToGate { call, known, is_new }) = self.state.open.get(at).and_then(Slot::to_gate) {
            self.state.hand_over(at);
            let result = Box::pin(self.run.exec_within(&Span::current(), call, known, is_new)).await;
            self.state.take(at, &result);
        }
        Ok(())
    }

    /// Finishes the calls that have expired. Returns whether any call ended.
    pub(in crate::agent) async fn expire(&mut self, now: Timestamp) -> Result<bool, ResumeError> {
        let is_late = |call: &&WaitingCall| call.expires_at.is_some_and(|expires| expires <= now);
        if self.state.waiting().any(|call| is_late(&call)) {
            // Refresh the questions, because the expiry of an old question is refused.
            ask_again(&self.run, &mut self.state).await?;
        }
        let late: Vec<_> = self.state.waiting().filter(is_late).map(|call| call.question.clone()).collect();
        let mut ended = false;
        for question in &late {
            let id = question.call_id();
            self.act(id, Action::Expire(question.clone())).await?;
            ended |= self.state.waiting().all(|call| call.id != *id);
        }
        Ok(ended)
    }

    /// Reads from the store the details that a person needs for a decision.
    pub(in crate::agent) async fn describe(&mut self) {
        for slot in &mut self.state.open {
            let CallState::Waiting(call) = &mut slot.progress else { continue };
            if call.expires_at.is_none()
                && let Ok(Some(pending)) = self.run.pending(&slot.id).await
            {
                describe(call, &pending);
            }
        }
    }
}

/// Reads the waiting calls again, because another process may have replaced their questions or stored approvals. If
/// that process was killed, the conversation does not contain these changes.
pub(in crate::agent) async fn ask_again(run: &Run, state: &mut ConversationState) -> Result<(), StoreError> {
    for slot in &mut state.open {
        if let CallState::Waiting(call) = &mut slot.progress
            && let Some(pending) = run.pending(&slot.id).await?
        {
            describe_again(call, &pending);
        }
    }
    Ok(())
}

fn describe_again(call: &mut WaitingCall, pending: &PendingCall) {
    let is_new = call.question != pending.question() || (&*call.approvals, call.required) != pending.approvals();
    // Two processes can use one id for two calls.
    if is_new && *call.name == *pending.tool.as_str() {
        describe(call, pending);
    }
}

fn describe(call: &mut WaitingCall, pending: &PendingCall) {
    call.question = pending.question();
    call.shown_arguments = Some(pending.shown_arguments.clone());
    let (summary, changes, names) = pending.decided_explanation();
    call.summary = summary.map(str::to_owned);
    (call.changes, call.names) = (changes.to_vec(), names.to_vec());
    call.labels.clone_from(&pending.labels);
    let (approvals, required) = pending.approvals();
    (call.approvals, call.required) = (approvals.to_vec(), required);
    call.rule.clone_from(&pending.rule);
    call.expires_at = Some(pending.expires_at);
    if let Some(graph) = &pending.graph {
        call.path = Some(graph.path.clone());
        call.shown_arguments.clone_from(&graph.shown_arguments);
        call.rule.clone_from(&graph.rule);
        call.refused.clone_from(&graph.refused);
    }
}

/// Looks up in the store every call that was handed to the gate and has no result.
pub(in crate::agent) async fn look_up(run: &Run, state: &mut ConversationState) {
    for at in 0..state.open.len() {
        if let Some(CallState::Running) = state.open.get(at).map(|slot| &slot.progress) {
            resolve_started(run, state, at).await;
        }
    }
    look_for_queued(run, state).await;
}

/// Looks up every queued call of a restored conversation: the previous process may have handed it to the gate. If the
/// store cannot be read, the call stays unknown.
pub(in crate::agent) async fn look_for_queued(run: &Run, state: &mut ConversationState) {
    for slot in &mut state.open {
        if matches!(slot.progress, CallState::Queued)
            && !slot.fresh
            && let Ok(known) = run.recorded(&slot.id).await
        {
            (slot.is_new, slot.known) = (known.is_none(), known);
        }
    }
}

/// Finds the queued calls of a restored conversation that wait in the store: the previous process was killed after a
/// call was suspended and before it saved. A decision on such a call may have been posted since.
pub(in crate::agent) async fn look_for_waiting(run: &Run, state: &mut ConversationState) -> Result<(), StoreError> {
    for at in 0..state.open.len() {
        let Some(slot) = state.open.get(at) else { break };
        if matches!(slot.progress, CallState::Queued)
            && !slot.fresh
            && slot.known.is_none()
            && let Some(pending) = run.pending(&slot.id).await?
        {
            suspended(state, at, &pending);
        }
    }
    Ok(())
}

/// Updates a call that may have begun in another process. It gets its recorded result, or waits if the store has it as
/// pending; otherwise its outcome is unknown.
pub(in crate::agent) async fn resolve_started(run: &Run, state: &mut ConversationState, at: usize) {
    let Some(id) = state.open.get(at).map(|slot| slot.id.clone()) else { return };
    // Read the pending call first: if it is decided between the two reads, the second read finds the record.
    let pending = run.pending(&id).await;
    if let Ok(Some(result)) = run.recorded(&id).await {
        state.take(at, &result);
    } else if let Ok(Some(pending)) = pending {
        suspended(state, at, &pending);
    } else {
        state.close_without_result(at);
    }
}

/// Updates a queued call of a restored conversation that the previous process may have handed to the gate. A call that
/// was recorded or suspended does not run again. For a call that began, the gate reads the ledger.
pub(in crate::agent) async fn read_earlier_result(
    run: &Run,
    state: &mut ConversationState,
    at: usize,
) -> Result<(), StoreError> {
    let Some(id) = state.open.get(at).map(|slot| slot.id.clone()) else { return Ok(()) };
    let earlier = recover::earlier(run, &id).await?;
    let is_new = matches!(earlier, Earlier::Nothing);
    let known = if let Earlier::Ended(result) = earlier { Some(result) } else { None };
    if known.is_none()
        && let Some(pending) = run.pending(&id).await?
    {
        suspended(state, at, &pending);
    }
    if let Some(slot) = state.open.get_mut(at) {
        (slot.fresh, slot.is_new, slot.known) = (true, is_new, known);
    }
    Ok(())
}

/// Refreshes a waiting call that another process may have decided. Returns whether the call runs in that process.
pub(in crate::agent) async fn refresh(run: &Run, state: &mut ConversationState, at: usize) -> Result<bool, StoreError> {
    let Some(slot) = state.open.get(at).filter(|slot| slot.waiting().is_some()) else { return Ok(false) };
    let id = slot.id.clone();
    if let Some(pending) = run.pending(&id).await? {
        if let Some(CallState::Waiting(call)) = state.open.get_mut(at).map(|slot| &mut slot.progress) {
            describe_again(call, &pending);
        }
        return Ok(false);
    }
    match went_on(run, &id, Some(&slot.progress)).await? {
        Some(Some(result)) => state.take(at, &result),
        Some(None) => return Ok(true),
        None => {}
    }
    Ok(false)
}

/// Continues a waiting call that another process decided. Two processes can use one id for two calls, so the record has
/// to have the tool and the arguments of the waiting call. The arguments may differ if a person edited them.
async fn went_on(run: &Run, id: &CallId, waited: Option<&CallState>) -> Result<Known, StoreError> {
    let Some(CallState::Waiting(call)) = waited else { return recover::go_on(run, id).await };
    let (name, shown) = (call.name.clone(), call.shown_arguments.clone().filter(|_| call.path.is_none()));
    let is_it = move |record: &ToolInvocationRecord| {
        let edited = matches!(record.intervention.as_deref(), Some(Intervention::Edited(_)));
        let same = shown.as_ref().is_none_or(|shown| shows(&record.arguments, shown));
        *record.name == *name && (edited || same)
    };
    recover::go_on_with(run, id, is_it).await
}

/// Whether the call waits for its client and asks this question.
fn is_clients(waited: Option<&CallState>, question: &Question) -> bool {
    matches!(waited, Some(CallState::Waiting(call))
        if call.suspension == Suspension::Client && call.question == *question)
}

/// Sets a call as waiting, by the store's document.
fn suspended(state: &mut ConversationState, at: usize, pending: &PendingCall) {
    let Some(slot) = state.open.get(at) else { return };
    let mut call =
        WaitingCall::new(pending.question(), slot.name.clone(), pending.suspension, pending.prepared.clone());
    describe(&mut call, pending);
    state.set(at, CallState::Waiting(Box::new(call)));
}
