//! [`Tasks`]: calls that are suspended until a person approves them, or until their client answers a question. Clients
//! that support tasks see them as tasks of the protocol (SEP-2663); other clients [repeat the call](held).
//!
//! A task has no state of its own: the server reads the state of the call from the store. Any process that shares the
//! store can post a decision to the run; this server carries it out once, through the gate. A task belongs to the party
//! that made the call, which is a principal with its tenant, roles, attributes and tools. Other parties get the same
//! answer as for a task that does not exist. A client can query a task while a decision on the call is possible, or for
//! a day if the call runs and has questions, and for ten minutes after the call has ended. If the server asks the
//! client about an unknown outcome, the time to answer is added to these ten minutes. After a restart on the same
//! store, the server finds a task when its client queries it.

mod attending;
mod changed;
mod dialogue;
mod entering;
mod held;
mod kept;
mod left;
mod outcome;
mod question;
mod requests;
mod run_tasks;
mod running;
mod status;
mod task_runner;
mod unsettled;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::call::CallId;
use crate::contain::discard;
use crate::mcp::serve::tasks::run_tasks::RunTasks;
use crate::runner::{Run, RunOptions, ServedRun, ToolRunner};
use crate::store::Store as _;

use status::task_id;

pub(super) use entering::{Entered, Entering, Waiting};
pub(super) use held::{Guest, HeldAnswer, Repeated};
pub(super) use left::Left;
pub(super) use outcome::EndedUnknown;
pub(super) use running::{Answered, Running, asking, questions};

/// The suspended calls of a server, of all its clients together.
pub(super) struct Tasks {
    by_run: Mutex<HashMap<String, Arc<RunTasks>>>,
    limits: Limits,
    /// When the server began, by the clock of the store.
    began: Arc<OnceLock<Timestamp>>,
}

/// A server's limits for suspended calls.
pub(super) struct Limits {
    /// The maximum number of suspended calls at a time; 0 if the server has no tasks.
    pub(super) tasks: usize,
    /// The maximum number for one principal.
    pub(super) each: usize,
    /// Whether the server may ask a client to decide on the calls of its principal.
    pub(super) asks: bool,
    /// Whether approvers have access to the store.
    pub(super) has_approvers: bool,
    /// How long a request is held open; `None` if it is answered at once.
    pub(super) hold: Option<Duration>,
}

/// The maximum number of suspended calls on a server that has no tasks.
const WAITING: usize = 1024;

/// A suspended call, or a running call with questions for its client.
pub(super) struct Ticket {
    run_tasks: Arc<RunTasks>,
    call: CallId,
}

/// The reason why a call is not suspended.
#[derive(Clone, Copy)]
enum NotSuspended {
    /// This limit of suspended calls is reached, for the principal or for all.
    Full(usize),
    /// The store failed.
    Failed,
    /// An identical call of its party is already suspended.
    Taken,
    /// No person can decide on the call: no approver has access to the store, and the server may not ask the client.
    NoDecider {
        /// Whether the call would wait because an earlier call has an unknown outcome.
        is_twin: bool,
    },
}

impl Tasks {
    pub(super) fn new(limits: Limits) -> Self {
        Self { by_run: Mutex::default(), limits, began: Arc::default() }
    }

    /// Sets the time when the server began, if it is not set.
    pub(super) async fn begin(&self, runner: &ToolRunner) {
        if self.began.get().is_none() {
            match runner.store().now().await {
                Ok(now) => drop(self.began.set(now)),
                // The task that closes abandoned calls tries again in its next round.
                Err(error) => discard(error),
            }
        }
    }

    /// Whether the server has tasks.
    pub(super) const fn has_tasks(&self) -> bool {
        self.limits.tasks > 0
    }

    /// Returns the maximum number of suspended calls.
    const fn max(&self) -> usize {
        if self.has_tasks() { self.limits.tasks } else { WAITING }
    }

    fn by_run(&self) -> MutexGuard<'_, HashMap<String, Arc<RunTasks>>> {
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task to its run. Returns the tasks of the run, and whether this task is the first.
    fn run_tasks(
        &self,
        run: &Run,
        party: &RunOptions,
        add: impl FnOnce(&RunTasks),
    ) -> Result<(Arc<RunTasks>, bool), NotSuspended> {
        let mut by_run = self.by_run();
        let theirs = by_run.values().filter(|run_tasks| run_tasks.party.is_principal_of(party));
        if theirs.map(|run_tasks| run_tasks.len()).sum::<usize>() >= self.limits.each {
            return Err(NotSuspended::Full(self.limits.each));
        }
        if by_run.values().map(|run_tasks| run_tasks.len()).sum::<usize>() >= self.max() {
            tracing::warn!(calls = self.max(), "the limit of waiting calls of MCP clients is reached");
            return Err(NotSuspended::Full(self.max()));
        }
        let known = by_run.get(run.id()).cloned();
        let is_new = known.is_none();
        let run_tasks = known.unwrap_or_else(|| self.tasks_of(run.clone(), party.clone()));
        // Added before the insertion, so that no other task sees an empty `RunTasks` and removes it.
        add(&run_tasks);
        by_run.insert(run.id().to_owned(), Arc::clone(&run_tasks));
        Ok((run_tasks, is_new))
    }

    /// Creates an empty set of tasks for a run.
    fn tasks_of(&self, run: Run, party: RunOptions) -> Arc<RunTasks> {
        Arc::new(RunTasks::new(run, party, (self.limits.asks, Arc::clone(&self.began))))
    }

    /// Whether this server continues a run of the store.
    fn continues(&self, run_id: &Arc<str>) -> bool {
        self.by_run().values().any(|run_tasks| ServedRun(&run_tasks.run).stored_id() == run_id)
    }

    /// Removes a run without tasks. Returns `false` if the run has a new task and stays.
    fn leave(&self, run_tasks: &RunTasks) -> bool {
        let mut by_run = self.by_run();
        let is_over = run_tasks.len() == 0;
        if is_over {
            by_run.remove(run_tasks.run.id());
        }
        is_over
    }
}
