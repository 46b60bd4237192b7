//! [`Tasks`]: calls that are suspended for an approval or for their client. Clients that know tasks see them as tasks
//! of the protocol (SEP-2663); other clients [repeat the call](held).
//!
//! A task has no state of its own: the state of its call is read from the store. Any process that shares the store can
//! post a decision to the run; this server carries it out once, through the gate. A task belongs to the party whose
//! call it is; for other parties it does not exist. It can be queried while a decision is possible, and for ten minutes
//! after its call has ended. After a restart on the same store, the server finds a task when its client queries it.

mod answers;
mod attending;
mod entering;
mod held;
mod kept;
mod question;
mod run_tasks;
mod running;
mod status;
mod task_runner;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{DetailedTask, ErrorData, InputRequests, Task, TaskPayload};

use crate::call::{CallId, Outcome};
use crate::mcp::serve::McpServer;
use crate::mcp::serve::answer::answer;
use crate::mcp::serve::tasks::kept::SavedRunTasks;
use crate::mcp::serve::tasks::run_tasks::{RunTasks, State};
use crate::runner::ServedRuns;
use crate::runner::{RestoreError, Run, RunOptions};

use entering::Refusal;
use status::{described, failed, object, task_id, unknown};

pub(super) use entering::{Entered, Entering, Waiting};
pub(super) use held::{Guest, HeldAnswer};
pub(super) use running::{Answered, Running, asking};

/// The longest id of a task, in bytes.
const MAX_ID_BYTES: usize = 256;

/// The suspended calls of a server, of all its clients together.
pub(super) struct Tasks {
    by_run: Mutex<HashMap<String, Arc<RunTasks>>>,
    limits: Limits,
}

/// A server's limits for suspended calls.
pub(super) struct Limits {
    /// The maximum number at the same time; 0 if the server has no tasks.
    pub(super) tasks: usize,
    /// The maximum for one principal.
    pub(super) each: usize,
    /// Whether the server may ask a client to decide on the calls of its principal.
    pub(super) asks: bool,
    /// How long a request is held; `None` if it is answered at once.
    pub(super) hold: Option<Duration>,
}

/// The maximum number of suspended calls on a server that has no tasks.
const WAITING: usize = 1024;

/// A suspended call, or a running call with questions for its client.
pub(super) struct Ticket {
    run_tasks: Arc<RunTasks>,
    call: CallId,
}

impl Tasks {
    pub(super) fn new(limits: Limits) -> Self {
        Self { by_run: Mutex::default(), limits }
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

    /// Describes a suspended call as a task.
    pub(super) async fn task(&self, server: &McpServer, ticket: &Ticket) -> Result<Task, ErrorData> {
        let look = ticket.look(server).await?.ok_or_else(unknown)?;
        Ok(described(task_id(ticket.run_tasks.run.id(), &ticket.call).ok_or_else(unknown)?, &look))
    }

    /// Adds a task to those of its run. Returns the run's tasks, and whether it is the first one.
    fn run_tasks(
        &self,
        run: &Run,
        party: &RunOptions,
        add: impl FnOnce(&RunTasks),
    ) -> Result<(Arc<RunTasks>, bool), Refusal> {
        let mut by_run = self.by_run();
        let theirs = by_run.values().filter(|run_tasks| run_tasks.party.is_principal_of(party));
        if theirs.map(|run_tasks| run_tasks.len()).sum::<usize>() >= self.limits.each {
            return Err(Refusal::Full(self.limits.each));
        }
        if by_run.values().map(|run_tasks| run_tasks.len()).sum::<usize>() >= self.max() {
            tracing::warn!(calls = self.max(), "waiting calls of MCP clients are at their limit");
            return Err(Refusal::Full(self.max()));
        }
        let known = by_run.get(run.id()).cloned();
        let is_new = known.is_none();
        let run_tasks = known.unwrap_or_else(|| Arc::new(RunTasks::new(run.clone(), party.clone())));
        // Added before the insertion, so that no other task sees an empty `RunTasks` and removes it.
        add(&run_tasks);
        by_run.insert(run.id().to_owned(), Arc::clone(&run_tasks));
        Ok((run_tasks, is_new))
    }

    /// Returns the present state of a task.
    pub(super) async fn get(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
        objects_only: bool,
    ) -> Result<(DetailedTask, Run), ErrorData> {
        let (run_tasks, call) = self.find(server, party, id).await?;
        let look = run_tasks.look(&server.0, &call).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        let payload = match &look.state {
            State::Waits(pending) => TaskPayload::InputRequired {
                input_requests: match self.own_question(&run_tasks, &look) {
                    Some(key) => {
                        question::approval(&look.saved.name, pending).map(|asked| (key, asked)).into_iter().collect()
                    }
                    None => InputRequests::new(),
                },
            },
            State::Works => match look.questions.requests() {
                asked if asked.is_empty() => TaskPayload::Working,
                input_requests => TaskPayload::InputRequired { input_requests },
            },
            State::Ended(result) if result.outcome() == Outcome::Cancelled => TaskPayload::Cancelled,
            State::Ended(result) => {
                let offered = server.0.listing.get(&look.saved.name).ok_or_else(unknown)?;
                match answer(result, &look.saved.name, &offered, objects_only) {
                    Ok(result) => TaskPayload::Completed { result: object(&result)? },
                    Err(error) => TaskPayload::Failed { error: object(&error)? },
                }
            }
        };
        Ok((DetailedTask::new(described(id.to_owned(), &look), payload), run_tasks.run.clone()))
    }

    /// Ends the call of a task, if it has not ended.
    pub(super) async fn cancel(&self, server: &McpServer, party: RunOptions, id: &str) -> Result<(), ErrorData> {
        let (run_tasks, call) = self.find(server, party, id).await?;
        run_tasks.look(&server.0, &call).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        run_tasks.cancel(&server.0, &call).await.map_err(|error| failed(&error))
    }

    /// Finds a task of a party: here, or in the store, where an earlier process may have left it.
    async fn find(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
    ) -> Result<(Arc<RunTasks>, CallId), ErrorData> {
        let is_id = id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
        let (run_id, call) = id.rsplit_once('.').filter(|_| is_id).ok_or_else(unknown)?;
        let call = CallId::new(call);
        let known = self.by_run().get(run_id).cloned();
        if let Some(run_tasks) = known {
            return if run_tasks.party.is_party_of(&party) { Ok((run_tasks, call)) } else { Err(unknown()) };
        }
        let runner = &server.0.runner;
        let document =
            ServedRuns(runner).document(run_id, &party).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        let saved: SavedRunTasks = serde_json::from_str(&document).map_err(|_| unknown())?;
        let run = runner.restore(saved.run, party.clone().ends_with_process()).await.map_err(|error| match error {
            RestoreError::Store(error) => failed(&error),
            _ => unknown(),
        })?;
        let run_tasks = Arc::new(RunTasks::new(run, party));
        saved.tasks.into_iter().for_each(|(id, task)| run_tasks.add(id, task, Arc::default(), None));
        run_tasks.restored(document);
        let mut by_run = self.by_run();
        if let Some(faster) = by_run.get(run_id) {
            return if faster.party.is_party_of(&run_tasks.party) {
                Ok((Arc::clone(faster), call))
            } else {
                Err(unknown())
            };
        }
        by_run.insert(run_id.to_owned(), Arc::clone(&run_tasks));
        drop(by_run);
        task_runner::start(server, &run_tasks);
        Ok((run_tasks, call))
    }

    /// Removes a run whose tasks are over. Returns `false` if it has a new task.
    fn leave(&self, run_tasks: &RunTasks) -> bool {
        let mut by_run = self.by_run();
        let is_over = run_tasks.len() == 0;
        if is_over {
            by_run.remove(run_tasks.run.id());
        }
        is_over
    }
}
