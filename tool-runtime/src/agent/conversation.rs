//! [`Conversation`]: what an application does with an agent.

use std::collections::HashSet;
use std::fmt;

use crate::agent::display::Done;
use crate::agent::state::{Slot, State};
use crate::agent::{Agent, ClientAnswer, Ended, ModelTurn, NotWaiting, WaitingCall};
use crate::call::{CallId, ToolExecResult};
use crate::runner::{ApprovalDecision, Run};
use crate::store::Suspension;
use crate::wire::Message;
use crate::wire::history::{Missing, ResultMessage, repair};

/// One history and the run that its calls go through.
///
/// Every method that returns an [`Ended`] emits exactly one `done` event, also when its future is dropped. A dropped
/// future leaves a history that can go on: calls without a result get the one that their record tells of.
pub struct Conversation {
    pub(super) agent: Agent,
    pub(super) run: Run,
    pub(super) state: State,
}

impl Conversation {
    /// The user writes something; the model and the gate take turns until it is answered or somebody has to act.
    ///
    /// Calls that still wait are abandoned: the model reads that nobody acted on them.
    pub async fn send(&mut self, text: impl Into<String>) -> Ended {
        let done = Done::new(&self.run);
        self.abandon().await;
        let text = text.into();
        self.run.add_user_text(&text);
        self.state.history.push(Message::User(text));
        self.state.asked = 0;
        done.with(self.drive().await)
    }

    /// The client answers calls that it was to execute. When no call waits any more, the model goes on.
    ///
    /// # Errors
    /// One of the ids does not wait for a client; nothing was taken.
    pub async fn answer(&mut self, answers: impl IntoIterator<Item = ClientAnswer>) -> Result<Ended, NotWaiting> {
        let answers: Vec<_> = answers.into_iter().collect();
        let mut seen = HashSet::new();
        for id in answers.iter().map(ClientAnswer::id) {
            if !seen.insert(id) || self.place(id, Suspension::Client).is_none() {
                return Err(NotWaiting { id: id.clone() });
            }
        }
        let done = Done::new(&self.run);
        for answer in &answers {
            let id = answer.id().clone();
            let result = match answer {
                ClientAnswer::Value { json, .. } => self.run.client_result(id.as_str(), json).await,
                ClientAnswer::Failed { .. } => self.run.client_failed(id.as_str()).await,
            };
            self.settle(&id, result.ok()).await;
        }
        Ok(done.with(self.go_on().await))
    }

    /// A person decides on a call that waits. When no call waits any more, the model goes on.
    ///
    /// # Errors
    /// The id does not wait for a person; nothing was done.
    pub async fn decide(&mut self, id: &CallId, decision: ApprovalDecision) -> Result<Ended, NotWaiting> {
        if self.place(id, Suspension::Approval).is_none() {
            return Err(NotWaiting { id: id.clone() });
        }
        let done = Done::new(&self.run);
        let result = self.run.resume(id.as_str(), decision).await;
        self.settle(id, result.ok()).await;
        Ok(done.with(self.go_on().await))
    }

    /// The history, whole: each call followed by its one result, in call order.
    #[must_use]
    pub fn history(&self) -> Vec<Message> {
        let settled = self.state.open.iter().filter_map(|slot| match slot {
            Slot::Done(result) => Some(Message::Result(result.clone())),
            Slot::Running(_) | Slot::Waiting(_) => None,
        });
        let all: Vec<_> = self.state.history.iter().cloned().chain(settled).collect();
        repair(&all, |_| Missing::Cancelled)
    }

    /// The calls that wait, in the order of the model.
    pub fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        self.state.open.iter().filter_map(|slot| match slot {
            Slot::Waiting(call) => Some(call),
            Slot::Running(_) | Slot::Done(_) => None,
        })
    }

    /// Returns the account of the model's turns so far, in order.
    #[must_use]
    pub fn turns(&self) -> &[ModelTurn] {
        &self.state.turns
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// The turn before was left open: what waits is given up, what was interrupted is looked up.
    async fn abandon(&mut self) {
        self.look_up().await;
        let waiting: Vec<_> = self.waiting().map(|call| call.id.clone()).collect();
        for id in waiting {
            let result = self.run.abandon(id.as_str()).await.ok();
            self.settle(&id, result).await;
        }
        self.close();
    }

    /// Calls whose future was dropped get the result that their record tells of.
    pub(super) async fn look_up(&mut self) {
        let run = self.run.clone();
        for slot in &mut self.state.open {
            if let Slot::Running(id) = slot {
                let recorded = run.recorded(id).await.ok().flatten();
                *slot = Slot::Done(
                    recorded
                        .map_or_else(|| ResultMessage::missing(id.clone(), Missing::Cancelled), |one| (&one).into()),
                );
            }
        }
    }

    fn place(&self, id: &CallId, suspension: Suspension) -> Option<usize> {
        let waits =
            |slot: &Slot| matches!(slot, Slot::Waiting(call) if call.id == *id && call.suspension == suspension);
        self.state.open.iter().position(waits)
    }

    /// A call that waited has its result. One that somebody else finished is told as its record tells it.
    async fn settle(&mut self, id: &CallId, result: Option<ToolExecResult>) {
        let result = match result {
            Some(result) => Some(result),
            None => self.run.recorded(id).await.ok().flatten(),
        };
        let waits = |slot: &&mut Slot| matches!(slot, Slot::Waiting(call) if call.id == *id);
        if let Some(slot) = self.state.open.iter_mut().find(waits) {
            *slot = match (&*slot, result) {
                (Slot::Waiting(call), Some(result)) => Slot::of(result, &call.name),
                _ => Slot::Done(ResultMessage::missing(id.clone(), Missing::Cancelled)),
            };
        }
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agent, messages) = (&self.agent, self.state.history.len());
        f.debug_struct("Conversation").field("agent", agent).field("messages", &messages).finish_non_exhaustive()
    }
}
