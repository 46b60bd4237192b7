//! [`Tasks`]: calls that wait for an approval or for their client, as tasks of the protocol (SEP-2663).
//!
//! A call that waits is answered with a task if its client knows tasks, and ends as it always did otherwise. The task is
//! that call: its state is read from the store, a decision on it is posted to its run by any process that shares the
//! store, and is carried out here, through the gate, once. A task belongs to the party whose call it is; to everybody
//! else it reads like one that does not exist. It can be asked for as long as somebody may decide, and for ten minutes
//! after its call ended. A server that starts again on the same store finds a task when its client asks for it.

mod desk;
mod keeper;
mod question;
mod running;
mod said;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{DetailedTask, ErrorData, InputRequests, InputResponses, Task, TaskPayload};

use crate::agent::{Incoming, RunQueue};
use crate::call::{CallId, Outcome};
use crate::mcp::serve::McpServer;
use crate::mcp::serve::answer::answer;
use crate::mcp::serve::handler::broken;
use crate::mcp::serve::tasks::desk::{Desk, Look, SavedDesk, SavedTask, State};
use crate::runner::{RestoreError, Run, RunOptions};
use crate::store::posts::finishes;

use said::{described, failed, object, task_id, too_many, unknown};

pub(super) use running::{Answered, Running, asking};

/// The longest id of a task, in bytes.
const MAX_ID_BYTES: usize = 256;

/// The tasks of a server, of all its clients together.
pub(super) struct Tasks {
    desks: Mutex<HashMap<String, Arc<Desk>>>,
    max: usize,
    /// Of one principal.
    max_each: usize,
    /// Whether a client may be asked to decide on the calls of its principal.
    asks: bool,
}

/// A call that may become a task.
pub(super) struct Waiting<'a> {
    pub(super) run: &'a Run,
    pub(super) party: RunOptions,
    pub(super) call: &'a CallId,
    /// The tool, by the name that the client knows.
    pub(super) name: &'a str,
    /// Whether the client asks its person to fill in forms.
    pub(super) asks: bool,
}

impl Tasks {
    pub(super) fn new(max: usize, max_each: usize, asks: bool) -> Self {
        Self { desks: Mutex::default(), max, max_each, asks }
    }

    fn desks(&self) -> MutexGuard<'_, HashMap<String, Arc<Desk>>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a task of a call that waits. Returns `None` if there are too many tasks, or the store failed: then the client
    /// is told that the call waits, like a client that knows no tasks.
    ///
    /// # Errors
    /// The principal has as many tasks as it may; the call waits no more.
    pub(super) async fn open(&self, server: &McpServer, waiting: Waiting<'_>) -> Result<Option<Task>, ErrorData> {
        let (run, call) = (waiting.run, waiting.call.clone());
        match self.opened(server, waiting).await {
            Ok(task) => Ok(Some(task)),
            Err(Refused::Otherwise) => Ok(None),
            Err(Refused::Each) => {
                // Nobody decides on what its client cannot ask for.
                if let Err(error) = run.abandon(call.as_str()).await {
                    tracing::warn!(run = run.id(), error = error.code(), "a call that waits could not be withdrawn");
                }
                Err(too_many(self.max_each))
            }
        }
    }

    async fn opened(&self, server: &McpServer, waiting: Waiting<'_>) -> Result<Task, Refused> {
        let Waiting { run, party, call, name, asks } = waiting;
        let id = task_id(run.id(), call).filter(|_| self.max > 0).ok_or(Refused::Otherwise)?;
        let pending = run.pending(call).await.ok().flatten().ok_or(Refused::Otherwise)?;
        let saved = SavedTask { name: name.to_owned(), created: pending.created_at, expires: pending.expires_at, asks };
        let (desk, is_new) = self.desk(run, &party, |desk| desk.add(call.clone(), saved, Arc::default(), None))?;
        if is_new {
            // Before anything is awaited: if this future is dropped, somebody still clears the desk away.
            keeper::start(server, &desk);
        }
        let kept = desk.save(&server.0).await;
        if let Err(error) = kept {
            tracing::warn!(run = run.id(), error = error.code(), "a call that waits could not be made a task");
            desk.remove(call);
            desk.changed.notify_one();
            return Err(Refused::Otherwise);
        }
        let look = desk.look(&server.0, call).await.ok().flatten().ok_or(Refused::Otherwise)?;
        Ok(described(id, &look))
    }

    /// Adds a task to those of its run. Returns them, and whether it is the first.
    fn desk(&self, run: &Run, party: &RunOptions, add: impl FnOnce(&Desk)) -> Result<(Arc<Desk>, bool), Refused> {
        let mut desks = self.desks();
        let theirs = desks.values().filter(|desk| desk.party.is_principal_of(party));
        if theirs.map(|desk| desk.len()).sum::<usize>() >= self.max_each {
            return Err(Refused::Each);
        }
        if desks.values().map(|desk| desk.len()).sum::<usize>() >= self.max {
            tracing::warn!(tasks = self.max, "as many calls of MCP clients wait as tasks as may");
            return Err(Refused::Otherwise);
        }
        let known = desks.get(run.id()).cloned();
        let is_new = known.is_none();
        let desk = known.unwrap_or_else(|| Arc::new(Desk::new(run.clone(), party.clone())));
        // Before anybody can see that there is none.
        add(&desk);
        desks.insert(run.id().to_owned(), Arc::clone(&desk));
        Ok((desk, is_new))
    }

    /// Says what a task is at this moment.
    pub(super) async fn get(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
        objects_only: bool,
    ) -> Result<(DetailedTask, Run), ErrorData> {
        let (desk, call) = self.find(server, party, id).await?;
        let look = desk.look(&server.0, &call).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        let payload = match &look.state {
            State::Waits(pending) => TaskPayload::InputRequired {
                input_requests: match self.own_question(&desk, &look) {
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
                match answer(result, &look.saved.name, offered, objects_only) {
                    Ok(result) => TaskPayload::Completed { result: object(&result)? },
                    Err(error) => TaskPayload::Failed { error: object(&error)? },
                }
            }
        };
        Ok((DetailedTask::new(described(id.to_owned(), &look), payload), desk.run.clone()))
    }

    /// Takes answers to what a task asked. What it did not ask, or does not ask any more, is left out.
    pub(super) async fn update(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
        answers: InputResponses,
    ) -> Result<(), ErrorData> {
        let (desk, call) = self.find(server, party, id).await?;
        let look = desk.look(&server.0, &call).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        let own = self.own_question(&desk, &look);
        for (key, answer) in answers {
            if own.as_ref() != Some(&key) {
                look.questions.answer(&key, &answer);
                continue;
            }
            let State::Waits(pending) = &look.state else { continue };
            let (Some(decision), Some(decider)) =
                (question::decision(&answer), desk.run.own_decider(pending.decided()))
            else {
                continue;
            };
            // Like every decision it is posted, so that it is carried out even if this process ends now.
            let incoming = Incoming::new().decide(call.clone(), decision, &decider);
            let queue = RunQueue::new(Arc::clone(server.0.runner.store()));
            let posted = queue.post_for(std::slice::from_ref(&**pending), &incoming).await;
            // Of two decisions on one question, the first counts.
            let _is_first = posted.map_err(|error| {
                tracing::warn!(run = desk.run.id(), error = error.code(), "a decision of an MCP client was not kept");
                broken()
            })?;
            desk.changed.notify_one();
        }
        Ok(())
    }

    /// Ends the call of a task, if it has not ended.
    pub(super) async fn cancel(&self, server: &McpServer, party: RunOptions, id: &str) -> Result<(), ErrorData> {
        let (desk, call) = self.find(server, party, id).await?;
        desk.look(&server.0, &call).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        desk.cancel(&server.0, &call).await.map_err(|error| failed(&error))
    }

    /// The key of the question whether the call may run, if its client may be asked. It names what was asked, so that an
    /// answer decides nothing else: in another process, or once a graph waits with its next call.
    fn own_question(&self, desk: &Desk, look: &Look) -> Option<String> {
        let State::Waits(pending) = &look.state else { return None };
        let may = self.asks && look.saved.asks && desk.run.own_decider(pending.decided()).is_some();
        let asked = finishes(pending).ok().filter(|_| may)?;
        Some(format!("approval-{}-{asked}", look.asked + 1))
    }

    /// Finds a task of a party: here, or in the store, where a process before may have left it.
    async fn find(&self, server: &McpServer, party: RunOptions, id: &str) -> Result<(Arc<Desk>, CallId), ErrorData> {
        let is_id = id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
        let (run_id, call) = id.rsplit_once('.').filter(|_| is_id && self.max > 0).ok_or_else(unknown)?;
        let call = CallId::new(call);
        let known = self.desks().get(run_id).cloned();
        if let Some(desk) = known {
            return if desk.party.is_party_of(&party) { Ok((desk, call)) } else { Err(unknown()) };
        }
        let runner = &server.0.runner;
        let document = runner.served(run_id, &party).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        let saved: SavedDesk = serde_json::from_str(&document).map_err(|_| unknown())?;
        let run = runner.restore(saved.run, party.clone().ends_with_process()).await.map_err(|error| match error {
            RestoreError::Store(error) => failed(&error),
            _ => unknown(),
        })?;
        let desk = Arc::new(Desk::new(run, party));
        saved.tasks.into_iter().for_each(|(id, task)| desk.add(id, task, Arc::default(), None));
        desk.restored(document);
        let mut desks = self.desks();
        if let Some(faster) = desks.get(run_id) {
            return if faster.party.is_party_of(&desk.party) { Ok((Arc::clone(faster), call)) } else { Err(unknown()) };
        }
        desks.insert(run_id.to_owned(), Arc::clone(&desk));
        drop(desks);
        keeper::start(server, &desk);
        Ok((desk, call))
    }

    /// Removes a run whose tasks are over. `false` if there is a new one.
    fn leave(&self, desk: &Desk) -> bool {
        let mut desks = self.desks();
        let is_over = desk.len() == 0;
        if is_over {
            desks.remove(desk.run.id());
        }
        is_over
    }
}

/// Why a call does not become a task.
enum Refused {
    /// Its principal has as many as it may.
    Each,
    /// All clients together have, or the store failed.
    Otherwise,
}
