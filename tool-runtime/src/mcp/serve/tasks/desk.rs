//! [`Desk`]: the tasks of one run. What each is, the store says; a result stays here for a while with its files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::call::{CallId, Decider, Outcome, ToolExecResult};
use crate::capability::{Capabilities, Elicit};
use crate::mcp::serve::Served;
use crate::mcp::serve::tasks::question::{Asks, Questions};
use crate::runner::{ApprovalDecision, CallClient, ResumeError, Run, RunOptions, RunSnapshot};
use crate::store::{PendingCall, StoreError};

/// How long a task can be asked for once its call has ended.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// The tasks of one run.
pub(super) struct Desk {
    pub(super) run: Run,
    /// Whose they are.
    pub(super) party: RunOptions,
    calls: Mutex<BTreeMap<CallId, Entry>>,
    /// What the store has of this.
    kept: Mutex<Option<Arc<str>>>,
    /// Told when there may be something to do.
    pub(super) changed: Notify,
}

/// One task.
struct Entry {
    saved: SavedTask,
    updated: Timestamp,
    /// Decisions after which it still waited, so that each question has a key of its own.
    asked: u32,
    questions: Arc<Questions>,
    /// Decisions on the call that are carried out here, and what cancels them: one runs the call, others learn that.
    running: Option<(CancellationToken, usize)>,
    ended: Option<(ToolExecResult, Timestamp)>,
}

/// What another process needs to know of a task.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedTask {
    /// The tool, by the name that the client knows.
    pub(super) name: String,
    pub(super) created: Timestamp,
    /// When nobody can decide on its call any more.
    pub(super) expires: Timestamp,
    /// Whether the client asks its person to fill in forms.
    pub(super) asks: bool,
}

/// The document of a run in the store.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedDesk {
    pub(super) run: RunSnapshot,
    pub(super) tasks: BTreeMap<CallId, SavedTask>,
}

/// What a task looks like at a moment.
pub(super) struct Look {
    pub(super) saved: SavedTask,
    pub(super) updated: Timestamp,
    /// From when on it may be forgotten.
    pub(super) until: Timestamp,
    pub(super) asked: u32,
    pub(super) questions: Arc<Questions>,
    pub(super) state: State,
}

/// What the call of a task does.
pub(super) enum State {
    Waits(Box<PendingCall>),
    Works,
    Ended(ToolExecResult),
}

impl Desk {
    pub(super) fn new(run: Run, party: RunOptions) -> Self {
        let (calls, kept) = (Mutex::default(), Mutex::default());
        Self { run, party, calls, kept, changed: Notify::new() }
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<CallId, Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.calls().len()
    }

    /// Adds a call that waits, or runs here until it is cancelled.
    pub(super) fn add(
        &self,
        id: CallId,
        saved: SavedTask,
        questions: Arc<Questions>,
        running: Option<CancellationToken>,
    ) {
        let (updated, running) = (saved.created, running.map(|running| (running, 1)));
        self.calls().insert(id, Entry { saved, updated, asked: 0, questions, running, ended: None });
    }

    pub(super) fn remove(&self, id: &CallId) {
        self.calls().remove(id);
    }

    /// Keeps the tasks in the store, so that decisions can be posted to their run and another process finds them.
    pub(super) async fn save(&self, served: &Served) -> Result<(), StoreError> {
        let mut tasks = self.saved();
        loop {
            let run = self.run.snapshot().await?;
            let document = serde_json::to_string(&SavedDesk { run, tasks: tasks.clone() });
            let document: Arc<str> = document.map_err(|error| StoreError::Corrupt(error.into()))?.into();
            served.runner.keep_served(&self.run, Arc::clone(&document)).await?;
            self.restored(document);
            // Another call of the run may have become a task meanwhile, and have been kept before this one was.
            let now = self.saved();
            if now == tasks {
                return Ok(());
            }
            tasks = now;
        }
    }

    fn saved(&self) -> BTreeMap<CallId, SavedTask> {
        self.calls().iter().map(|(id, entry)| (id.clone(), entry.saved.clone())).collect()
    }

    /// The store has this document of the tasks.
    pub(super) fn restored(&self, document: Arc<str>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(document);
    }

    /// Removes the tasks from the store.
    pub(super) async fn forget(&self, served: &Served) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(document) = kept
            && let Err(error) = served.runner.forget_served(&self.run, document).await
        {
            tracing::warn!(run = self.run.id(), error = error.code(), "tasks that are over could not be removed");
        }
    }

    /// A task whose call does this.
    pub(super) fn shown(&self, id: &CallId, state: State) -> Option<Look> {
        let calls = self.calls();
        let entry = calls.get(id)?;
        let (saved, questions) = (entry.saved.clone(), Arc::clone(&entry.questions));
        Some(Look { saved, updated: entry.updated, until: entry.until(), asked: entry.asked, questions, state })
    }

    /// Looks at a task. `None` if there is none, or it is over.
    pub(super) async fn look(&self, served: &Served, id: &CallId) -> Result<Option<Look>, StoreError> {
        let now = served.runner.now();
        let look = |state| self.shown(id, state);
        let known = match self.calls().get(id) {
            None => return Ok(None),
            Some(entry) if now >= entry.until() => return Ok(None),
            Some(Entry { ended: Some((result, _)), .. }) => Some(State::Ended(result.clone())),
            Some(Entry { running: Some(_), .. }) => Some(State::Works),
            Some(_) => None,
        };
        if let Some(state) = known {
            return Ok(look(state));
        }
        if let Some(pending) = self.run.pending(id).await? {
            if !pending.is_expired(now) {
                return Ok(look(State::Waits(Box::new(pending))));
            }
            // Another process may have been faster, and the record says so then.
            if let Ok(result) = self.run.expire(id.as_str()).await {
                self.ended(id, &result, now);
                return Ok(look(State::Ended(result)));
            }
        }
        Ok(match self.run.finished_elsewhere(id).await? {
            Some(Some(result)) => {
                self.ended(id, &result, now);
                look(State::Ended(result))
            }
            Some(None) => look(State::Works),
            None => None,
        })
    }

    pub(super) fn ended(&self, id: &CallId, result: &ToolExecResult, now: Timestamp) {
        if let Some(entry) = self.calls().get_mut(id) {
            (entry.updated, entry.running, entry.ended) = (now, None, Some((result.clone(), now)));
        }
    }

    /// Carries a decision out, to the end of the call.
    pub(super) async fn decide(
        &self,
        served: &Served,
        id: &CallId,
        decision: ApprovalDecision,
        decider: &Decider,
        about: Option<&[Arc<str>]>,
    ) -> Result<(), ResumeError> {
        let mut cancellation = self.run.cancellation().child_token();
        let mut offers = Capabilities::new();
        if let Some(entry) = self.calls().get_mut(id) {
            if entry.saved.asks {
                let asks = Asks { questions: Arc::clone(&entry.questions), run: self.run.clone() };
                offers = offers.with::<dyn Elicit>(Arc::new(asks));
            }
            let (token, decisions) = entry.running.get_or_insert((cancellation, 0));
            *decisions += 1;
            cancellation = token.clone();
        }
        // Whatever becomes of the future, the task does not stay at work; until it has its end, nobody asks the store.
        let _stopped = Stopped { desk: self, id };
        let client = CallClient { is_offered: true, offers, cancellation: Arc::new(cancellation.clone()) };
        let resumed = self.run.resume_for(Some(Box::new(client)), id.as_str(), decision, decider, about);
        let mut resumed = Box::pin(resumed);
        let result = tokio::select! {
            result = &mut resumed => result,
            () = served.calls.stopped().cancelled() => {
                cancellation.cancel();
                resumed.await
            }
        };
        let (result, now) = (result?, served.runner.now());
        // The decision did not fit, or a graph waits with its next call: the next question is another one.
        if result.outcome() == Outcome::ApprovalMismatch || result.outcome().is_suspension() {
            if let Some(entry) = self.calls().get_mut(id) {
                (entry.updated, entry.asked) = (now, entry.asked + 1);
            }
        } else {
            self.ended(id, &result, now);
        }
        Ok(())
    }

    /// Ends a call that waits, or stops one that runs here.
    pub(super) async fn cancel(&self, served: &Served, id: &CallId) -> Result<(), StoreError> {
        let running = self.calls().get(id).and_then(|entry| entry.running.clone());
        if let Some((running, _)) = running {
            running.cancel();
            return Ok(());
        }
        match self.run.abandon(id.as_str()).await {
            Ok(result) => self.ended(id, &result, served.runner.now()),
            Err(ResumeError::Store(error)) => return Err(error),
            // It has ended, or runs in another process.
            Err(_) => {}
        }
        Ok(())
    }

    /// Ends what has waited too long, and drops what is over. Returns whether nothing is left.
    pub(super) async fn tidy(&self, served: &Served) -> bool {
        let now = served.runner.now();
        let late = |entry: &Entry| entry.ended.is_none() && entry.running.is_none() && now >= entry.saved.expires;
        let late: Vec<_> = self.calls().iter().filter(|(_, entry)| late(entry)).map(|(id, _)| id.clone()).collect();
        for id in late {
            if let Err(error) = self.look(served, &id).await {
                tracing::warn!(run = self.run.id(), error = error.code(), "a call that waits could not be looked at");
            }
        }
        let mut calls = self.calls();
        calls.retain(|_, entry| now < entry.until() || entry.running.is_some());
        calls.is_empty()
    }
}

impl Entry {
    /// From when on the task may be forgotten.
    fn until(&self) -> Timestamp {
        let from = self.ended.as_ref().map_or(self.saved.expires, |(_, ended)| *ended);
        from.saturating_add(KEPT).unwrap_or(Timestamp::MAX)
    }
}

/// A decision that is carried out here.
struct Stopped<'a> {
    desk: &'a Desk,
    id: &'a CallId,
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.desk.calls().get_mut(self.id) {
            let others = entry.running.take().filter(|(_, decisions)| *decisions > 1);
            entry.running = others.map(|(token, decisions)| (token, decisions - 1));
        }
    }
}
