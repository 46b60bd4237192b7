//! [`RunTasks`]: the tasks of one run. The state of each task is in the store. A result with its files stays in this
//! process for a while.
//!
//! The file is long because it has all states of a task, and all changes between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::call::{CallId, Decider, Outcome, Question, ToolExecResult};
use crate::capability::{Capabilities, Elicit};
use crate::mcp::serve::tasks::changed::Rules;
use crate::mcp::serve::tasks::kept::SavedTask;
use crate::mcp::serve::tasks::question::{Asks, Questions};
use crate::mcp::serve::tasks::unsettled::{self, UnknownOutcome};
use crate::runner::ledger::recover;
use crate::runner::waiting::changed;
use crate::runner::{
    ApprovalDecision, CallClient, ResumeError, Run, RunOptions, ServedRuns, ToolRunner, UnsettledCall,
};
use crate::store::{PendingCall, StoreError};

/// How long a task can be queried after its call has ended.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// The number of times that a client gets a question again after its decision was refused.
pub(super) const MOST_REFUSED: usize = 3;

/// The tasks of one run.
pub(super) struct RunTasks {
    pub(super) run: Run,
    /// The owner of the tasks.
    pub(super) party: RunOptions,
    /// Whether the server may ask the client to decide on calls of its own principal.
    pub(super) asks: bool,
    /// When the server began, by the clock of the store.
    pub(super) began: Arc<OnceLock<Timestamp>>,
    calls: Mutex<BTreeMap<CallId, Entry>>,
    /// The stored document of these tasks; `None` if there is none.
    pub(super) kept: Mutex<Option<Arc<str>>>,
    /// Notified when there may be work for the task runner.
    pub(super) changed: Notify,
    /// Notified when a call changes.
    pub(super) news: watch::Sender<()>,
}

/// One task.
pub(super) struct Entry {
    pub(super) saved: SavedTask,
    pub(super) updated: Timestamp,
    /// The number of answers that did not end the call or settle its outcome. It gives each question its own key.
    pub(super) asked: u32,
    /// How many answers to the present question were refused.
    pub(super) refused: usize,
    questions: Arc<Questions>,
    /// The token that cancels the decisions being carried out in this process, and their number. One of them runs the
    /// call; the others find it running.
    running: Option<(CancellationToken, usize)>,
    pub(super) ended: Option<(ToolExecResult, Timestamp)>,
    /// Whether this process ended the call, without an effect, because the policy or the definition of its tool has
    /// changed.
    pub(super) is_changed: bool,
    /// The state of the call's unknown outcome, if it has one.
    pub(super) outcome: UnknownOutcome,
    /// The requests that are held until the call ends, oldest first.
    pub(super) attending: BTreeMap<u64, HeldRequest>,
    /// Whether a request was answered with the result of the call.
    pub(super) reported: DeliveryState,
}

/// A request that the server holds open.
pub(super) struct HeldRequest {
    /// The capabilities that its client offers to the tool.
    pub(super) offers: Capabilities,
    /// Whether the request came after the call had ended, and therefore takes the result alone.
    pub(super) takes: bool,
}

/// Whether the result of a call reached a client that does not support tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryState {
    No,
    /// A request is being answered with the result. If that fails, the next request gets it.
    Sent,
    Yes,
}

/// A snapshot of a task.
pub(super) struct Look {
    pub(super) saved: SavedTask,
    pub(super) updated: Timestamp,
    /// The time from which the task may be removed.
    pub(super) until: Timestamp,
    pub(super) asked: u32,
    pub(super) questions: Arc<Questions>,
    pub(super) state: State,
}

/// The state of a task's call.
pub(super) enum State {
    Waits(Box<PendingCall>),
    Works,
    Ended(ToolExecResult),
    /// The call ended with an unknown outcome, and the server asks its client about the outcome.
    Unsettled(ToolExecResult, Box<UnsettledCall>),
    /// The call ended with an unknown outcome, which has been settled.
    Settled(ToolExecResult),
}

impl RunTasks {
    pub(super) fn new(run: Run, party: RunOptions, (asks, began): (bool, Arc<OnceLock<Timestamp>>)) -> Self {
        let (calls, kept) = (Mutex::default(), Mutex::default());
        Self { run, party, asks, began, calls, kept, changed: Notify::new(), news: watch::Sender::default() }
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, BTreeMap<CallId, Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.calls().len()
    }

    /// Adds a suspended call, or with `running` a call that runs in this process. `running` cancels it.
    pub(super) fn add(
        &self,
        id: CallId,
        saved: SavedTask,
        questions: Arc<Questions>,
        running: Option<CancellationToken>,
    ) {
        self.calls().insert(id, Entry::new(saved, questions, running));
    }

    /// Adds a call that another process stored. If another request has added the call already, the client gets
    /// questions only if both entries allow them.
    pub(super) fn add_stored(&self, id: CallId, saved: SavedTask) {
        let mut calls = self.calls();
        let SavedTask { asks, answered, .. } = saved;
        let entry = calls.entry(id).or_insert_with(|| Entry::new(saved, Arc::default(), None));
        (entry.saved.asks, entry.saved.answered) = (entry.saved.asks && asks, entry.saved.answered.or(answered));
    }

    /// Marks a running call as suspended. Returns `false` if there is no such call here.
    pub(super) fn waits(&self, id: &CallId, saved: &SavedTask) -> bool {
        let mut calls = self.calls();
        let entry = calls.get_mut(id);
        entry.map(|entry| (entry.saved.expires, entry.running) = (saved.expires, None)).is_some()
    }

    /// Whether a call has an unknown outcome that cannot be settled.
    fn is_final(&self, id: &CallId) -> bool {
        self.calls().get(id).is_some_and(|entry| entry.outcome.is_final)
    }

    /// Returns the rules under which this server continues the run.
    pub(super) fn rules<'r>(&'r self, runner: &'r ToolRunner) -> Rules<'r> {
        Rules { runner, run: &self.run, began: &self.began }
    }

    /// Whether this server ended a call without an effect because its rules have changed. An identical call is then a
    /// new call.
    pub(super) fn is_made_anew(&self, id: &CallId) -> bool {
        self.calls().get(id).is_some_and(|entry| entry.is_changed)
    }

    pub(super) fn has(&self, id: &CallId) -> bool {
        self.calls().contains_key(id)
    }

    pub(super) fn changed(&self) {
        self.news.send_replace(());
        self.changed.notify_one();
    }

    pub(super) fn remove(&self, id: &CallId) {
        self.calls().remove(id);
        self.news.send_replace(());
    }

    /// Returns a receiver that is notified of each change of a call from now on.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Returns a snapshot of the task with this state of its call. `None` if there is no such task.
    pub(super) fn shown(&self, id: &CallId, state: State) -> Option<Look> {
        let calls = self.calls();
        let entry = calls.get(id)?;
        let (saved, questions) = (entry.saved.clone(), Arc::clone(&entry.questions));
        Some(Look { saved, updated: entry.updated, until: entry.until(), asked: entry.asked, questions, state })
    }

    /// Reads the state of a task. `None` if there is no such task, or its time is over.
    pub(super) async fn look(&self, runner: &ToolRunner, id: &CallId) -> Result<Option<Look>, StoreError> {
        match self.look_first(runner, id).await? {
            Some(Look { state: State::Ended(result), .. })
                if result.outcome() == Outcome::OutcomeUnknown && !self.is_final(id) =>
            {
                unsettled::look_again(self, runner, id, result).await
            }
            look => Ok(look),
        }
    }

    /// Reads the state of a task like [`look`](Self::look), but not the settlement of an unknown outcome.
    async fn look_first(&self, runner: &ToolRunner, id: &CallId) -> Result<Option<Look>, StoreError> {
        let now = ServedRuns(runner).now();
        let look = |state| self.shown(id, state);
        let known = match self.calls().get(id) {
            None => return Ok(None),
            Some(entry) if now >= entry.until() => return Ok(None),
            Some(Entry { ended: Some((result, _)), outcome, .. }) if outcome.is_settled => {
                Some(State::Settled(result.clone()))
            }
            Some(Entry { ended: Some((result, _)), .. }) => Some(State::Ended(result.clone())),
            Some(Entry { running: Some(_), .. }) => Some(State::Works),
            Some(_) => None,
        };
        if let Some(state) = known {
            return Ok(look(state));
        }
        if let Some(pending) = self.run.pending(id).await? {
            // Read the clock again: reading the store has corrected it, if the system time was changed.
            let now = ServedRuns(runner).now();
            let ended = if pending.is_expired(now) {
                self.run.expire(&pending.question()).await
            } else if let Some(change) = self.rules(runner).change_since(&pending).await? {
                let ended = changed::expire(&self.run, &pending.question(), change).await;
                if let (Ok(result), Some(entry)) = (&ended, self.calls().get_mut(id)) {
                    entry.is_changed = result.outcome() == Outcome::ApprovalExpired;
                }
                ended
            } else {
                return Ok(look(State::Waits(Box::new(pending))));
            };
            match ended {
                // The call has a newer question, and still waits.
                Ok(result) if result.outcome() == Outcome::ApprovalMismatch => {
                    if let Some(pending) = self.run.pending(id).await? {
                        return Ok(look(State::Waits(Box::new(pending))));
                    }
                }
                Ok(result) => return Ok(look(self.ended_elsewhere(id, result, now))),
                Err(ResumeError::Store(error)) => return Err(error),
                // Another process expired or decided the call first: the record shows it.
                Err(_) => {}
            }
        }
        Ok(match recover::go_on(&self.run, id).await? {
            Some(Some(result)) => look(self.ended_elsewhere(id, result, now)),
            Some(None) => look(State::Works),
            None => None,
        })
    }

    /// Keeps the result that the store has for a call. A result that this process has for the call takes precedence,
    /// because it has the files of the call, which the store does not have.
    fn ended_elsewhere(&self, id: &CallId, result: ToolExecResult, now: Timestamp) -> State {
        let mut calls = self.calls();
        match calls.get_mut(id) {
            Some(Entry { ended: Some((result, _)), .. }) => return State::Ended(result.clone()),
            Some(Entry { running: Some(_), .. }) => return State::Works,
            Some(entry) => (entry.updated, entry.ended) = (now, Some((result.clone(), now))),
            None => {}
        }
        drop(calls);
        self.news.send_replace(());
        State::Ended(result)
    }

    pub(super) fn ended(&self, id: &CallId, result: &ToolExecResult, now: Timestamp) {
        if let Some(entry) = self.calls().get_mut(id) {
            (entry.updated, entry.running, entry.ended) = (now, None, Some((result.clone(), now)));
        }
        self.news.send_replace(());
    }

    /// Carries out a decision, up to the end of the call.
    pub(super) async fn decide(
        &self,
        (runner, stopped): (&ToolRunner, &CancellationToken),
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<(), ResumeError> {
        let id = question.call_id();
        let mut cancellation = self.run.cancellation().child_token();
        let mut offers = Capabilities::new();
        if let Some(entry) = self.calls().get_mut(id) {
            if entry.saved.asks {
                let asks = Asks { questions: Arc::clone(&entry.questions), run: self.run.clone() };
                offers = offers.with::<dyn Elicit>(Arc::new(asks));
            }
            // Capabilities of a held request replace those of the task: its client answers while the request is open.
            if let Some((_, held)) = entry.attending.last_key_value() {
                offers = offers.merge(held.offers.clone());
            }
            let (token, decisions) = entry.running.get_or_insert((cancellation, 0));
            *decisions += 1;
            cancellation = token.clone();
        }
        // Clears `running` even if this future is dropped: while it is set, the store is not queried for the call.
        let _stopped = Stopped { run_tasks: self, id };
        let cancelled = Arc::new(cancellation.clone());
        let client = CallClient { is_offered: true, offers, cancellation: cancelled, server: None };
        let resumed = self.run.resume_for(Some(Box::new(client)), question, decision, decider);
        let mut resumed = Box::pin(resumed);
        let result = tokio::select! {
            result = &mut resumed => result,
            () = stopped.cancelled() => {
                cancellation.cancel();
                resumed.await
            }
        };
        let (result, now) = (result?, ServedRuns(runner).now());
        // The decision was refused, or a graph is suspended with its next call. The next question gets a new key.
        // Refusals are counted, because a program may answer at once and be refused again.
        let is_refused = result.outcome() == Outcome::ApprovalMismatch;
        if is_refused || result.outcome().is_suspension() {
            if let Some(entry) = self.calls().get_mut(id) {
                entry.refused = if is_refused { entry.refused + 1 } else { 0 };
                if entry.refused <= MOST_REFUSED {
                    (entry.updated, entry.asked) = (now, entry.asked + 1);
                }
            }
            self.news.send_replace(());
        } else {
            self.ended(id, &result, now);
        }
        Ok(())
    }

    /// Ends a suspended call, or cancels a call that runs in this process.
    pub(super) async fn cancel(&self, runner: &ToolRunner, id: &CallId) -> Result<(), StoreError> {
        let (running, ended) = match self.calls().get(id) {
            Some(entry) => (entry.running.clone(), entry.ended.as_ref().map(|(result, _)| result.outcome())),
            None => (None, None),
        };
        // A client that cancels a call is not asked about its outcome.
        if running.is_some() || ended == Some(Outcome::OutcomeUnknown) {
            unsettled::stop_asking(self, runner, id).await;
        }
        if let Some((running, _)) = running {
            running.cancel();
            return Ok(());
        }
        if ended.is_some() {
            return Ok(());
        }
        match self.run.abandon(id.as_str()).await {
            Ok(result) => self.ended(id, &result, ServedRuns(runner).now()),
            Err(ResumeError::Store(error)) => return Err(error),
            // The call has ended, or runs in another process.
            Err(_) => {}
        }
        Ok(())
    }

    /// Expires calls that were suspended too long, and removes old results and results that their client has received.
    /// Returns whether no call is left, and the error if the store failed.
    pub(super) async fn tidy(&self, runner: &ToolRunner) -> (bool, Option<StoreError>) {
        let now = ServedRuns(runner).now();
        let late = |entry: &Entry| entry.ended.is_none() && entry.running.is_none() && now >= entry.saved.expires;
        let late: Vec<_> = self.calls().iter().filter(|(_, entry)| late(entry)).map(|(id, _)| id.clone()).collect();
        for id in late {
            if let Err(error) = self.look(runner, &id).await {
                tracing::warn!(run = self.run.id(), error = error.code(), "a waiting call could not be checked");
            }
        }
        let is_over = |entry: &Entry| {
            let is_reported = entry.reported == DeliveryState::Yes && entry.attending.is_empty();
            entry.running.is_none() && (is_reported || now >= entry.until())
        };
        let over = |(id, entry): (&CallId, &Entry)| is_over(entry).then(|| (id.clone(), entry.saved.asked_as.clone()));
        let over: Vec<_> = self.calls().iter().filter_map(over).collect();
        let mut failed = None;
        for (id, asked_as) in over {
            // Removed from the store first: otherwise an identical call finds it there as a call without an answer.
            let forgotten = match asked_as {
                Some(asked_as) => ServedRuns(runner).forget(&asked_as, self.named(&id)).await,
                None => Ok(()),
            };
            let mut calls = self.calls();
            if calls.get(&id).is_some_and(|entry| is_over(entry) && (forgotten.is_ok() || now >= entry.until())) {
                calls.remove(&id);
            }
            failed = failed.or(forgotten.err());
        }
        (self.calls().is_empty(), failed)
    }
}

impl Entry {
    fn new(saved: SavedTask, questions: Arc<Questions>, running: Option<CancellationToken>) -> Self {
        let (updated, running) = (saved.created, running.map(|running| (running, 1)));
        let (attending, reported, outcome) = (BTreeMap::new(), DeliveryState::No, UnknownOutcome::default());
        let (asked, refused, ended, is_changed) = (0, 0, None, false);
        Self { saved, updated, asked, refused, questions, running, ended, is_changed, outcome, attending, reported }
    }

    /// Returns the time from which the task may be removed.
    fn until(&self) -> Timestamp {
        let from = match (&self.ended, self.saved.answered) {
            // The client has probably received the result, and may repeat the call to make a second one.
            (_, Some(answered)) => answered,
            (None, _) => self.saved.expires,
            // The client may repeat the call until the time at which the suspended call would have expired.
            (Some((_, ended)), _) if self.saved.asked_as.is_some() => self.saved.expires.max(*ended),
            // First the time in which the client can answer the question, then the usual time.
            (Some((_, ended)), _) if self.outcome.is_asked && !self.outcome.is_settled => {
                ended.saturating_add(unsettled::OPEN).unwrap_or(Timestamp::MAX)
            }
            (Some((_, ended)), _) => *ended,
        };
        from.saturating_add(KEPT).unwrap_or(Timestamp::MAX)
    }
}

/// A guard that, when dropped, clears the mark of a decision that is being carried out.
struct Stopped<'a> {
    run_tasks: &'a RunTasks,
    id: &'a CallId,
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.run_tasks.calls().get_mut(self.id) {
            let others = entry.running.take().filter(|(_, decisions)| *decisions > 1);
            entry.running = others.map(|(token, decisions)| (token, decisions - 1));
        }
        self.run_tasks.news.send_replace(());
    }
}
