//! [`Entering`]: a call that is about to be suspended.
//!
//! One transaction writes the call, its run, and the id by which an identical call of the same party (a principal with
//! its tenant, roles, attributes and tools) finds it. If two processes get identical calls at the same time, only one
//! therefore suspends its call. A decision can be posted as soon as the call is visible. A process that is killed
//! leaves no call that its client cannot find.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use rmcp::model::ErrorData;

use crate::call::CallId;
use crate::mcp::serve::error::broken;
use crate::mcp::serve::tasks::kept::SavedTask;
use crate::mcp::serve::tasks::run_tasks::RunTasks;
use crate::mcp::serve::tasks::status::{no_decider, task_id, too_many};
use crate::mcp::serve::tasks::{NotSuspended, Ticket, task_runner};
use crate::mcp::serve::{McpServer, Served};
use crate::runner::{KeepsCall, Run, RunOptions, ServedRun, ServerEntry};
use crate::store::{PendingCall, StoreError};

/// A call that may be suspended.
pub(in crate::mcp::serve) struct Waiting {
    pub(in crate::mcp::serve) party: RunOptions,
    /// The tool, by the name that the client knows.
    pub(in crate::mcp::serve) name: String,
    /// Whether the client can ask a person to fill in forms.
    pub(in crate::mcp::serve) asks: bool,
    /// The id by which the store finds the call again, for a client that does not support tasks.
    pub(in crate::mcp::serve) asked_as: Option<Arc<str>>,
}

/// A call that the gate may suspend. It is stored only if that happens.
pub(in crate::mcp::serve) struct Entering {
    server: Weak<Served>,
    waiting: Waiting,
    state: Mutex<State>,
}

enum State {
    /// The call is not suspended yet, and may never be.
    Outside,
    /// The call is being written to the store.
    Enters(Arc<RunTasks>, CallId),
    Waits(Arc<RunTasks>, CallId),
    Refused(NotSuspended),
}

/// The outcome for a call that might be suspended.
pub(in crate::mcp::serve) enum Entered {
    /// The call was not suspended, or no longer is.
    Nothing,
    Waits(Ticket),
    /// An identical call of the same party is already suspended.
    Taken,
}

impl Entering {
    pub(in crate::mcp::serve) fn new(server: &McpServer, waiting: Waiting) -> Arc<Self> {
        Arc::new(Self { server: Arc::downgrade(&server.0), waiting, state: Mutex::new(State::Outside) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the outcome for the call. Call it after the gate has answered.
    ///
    /// # Errors
    /// The limit of suspended calls is reached, no person can decide on the call, or the store failed. The call is not
    /// suspended.
    pub(in crate::mcp::serve) async fn entered(&self, server: &McpServer) -> Result<Entered, ErrorData> {
        let (run_tasks, call) = match &*self.state() {
            State::Outside | State::Enters(..) => return Ok(Entered::Nothing),
            State::Refused(NotSuspended::Full(limit)) => return Err(too_many(*limit)),
            State::Refused(NotSuspended::Failed) => return Err(broken()),
            State::Refused(NotSuspended::Taken) => return Ok(Entered::Taken),
            State::Refused(NotSuspended::NoDecider { is_twin }) => return Err(no_decider(*is_twin)),
            State::Waits(run_tasks, call) => (Arc::clone(run_tasks), call.clone()),
        };
        // The run may be stored already, without this call.
        if let Err(error) = run_tasks.save(&server.0.runner).await {
            tracing::warn!(run = run_tasks.run.id(), error = error.code(), "a waiting call could not be stored");
        }
        Ok(Entered::Waits(Ticket { run_tasks, call }))
    }
}

#[async_trait]
impl KeepsCall for Entering {
    async fn entry(&self, run: &Run, call: &PendingCall) -> Result<Option<ServerEntry>, StoreError> {
        let Some(server) = self.server.upgrade().map(McpServer) else { return Ok(None) };
        let Waiting { party, name, asks, asked_as } = &self.waiting;
        let id = call.call_id.clone();
        if task_id(run.id(), &id).is_none() {
            *self.state() = State::Refused(NotSuspended::Failed);
            return Ok(None);
        }
        let tasks = &server.0.tasks;
        if !tasks.limits.has_approvers && !tasks.may_ask(run, call, *asks) {
            *self.state() = State::Refused(NotSuspended::NoDecider { is_twin: !call.unknown.is_empty() });
            return Ok(None);
        }
        let saved = SavedTask {
            name: name.clone(),
            created: call.created_at,
            expires: call.expires_at,
            asks: *asks,
            asked_as: asked_as.clone(),
            answered: None,
        };
        // A call that ran, and had a question for its client, is a task already.
        let known = server.0.tasks.by_run().get(run.id()).cloned();
        if let Some(run_tasks) = known.filter(|run_tasks| run_tasks.waits(&id, &saved)) {
            return Ok(Some(ServedRun(run).served_entry(run_tasks.document().await?, None)));
        }
        // Added before the write, so that a request that finds the call in the store finds it here, too.
        let add = |run_tasks: &RunTasks| run_tasks.add(id.clone(), saved.clone(), Arc::default(), None);
        let (run_tasks, is_new) = match server.0.tasks.run_tasks(run, party, add) {
            Ok(entered) => entered,
            Err(refusal) => {
                *self.state() = State::Refused(refusal);
                return Ok(None);
            }
        };
        *self.state() = State::Enters(Arc::clone(&run_tasks), id.clone());
        if is_new {
            task_runner::start(&server, &run_tasks);
        }
        let named = asked_as.as_ref().map(|asked_as| (asked_as, run_tasks.named(&id)));
        Ok(Some(ServedRun(run).served_entry(run_tasks.document().await?, named)))
    }

    fn entered(&self, waits: Option<bool>) {
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, State::Outside) {
            State::Enters(run_tasks, call) if waits == Some(true) => State::Waits(run_tasks, call),
            State::Enters(run_tasks, call) => {
                run_tasks.remove(&call);
                run_tasks.changed.notify_one();
                if waits.is_some() { State::Refused(NotSuspended::Taken) } else { State::Outside }
            }
            before => before,
        };
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        if let State::Enters(run_tasks, call) = &*self.state() {
            run_tasks.remove(call);
            run_tasks.changed.notify_one();
        }
    }
}
