//! Handles the requests of clients about a task: to read its state, to cancel it, and to answer its questions, such as
//! whether its call may run.

use std::sync::Arc;

use rmcp::model::{DetailedTask, ErrorData, InputRequests, InputResponses, Task, TaskPayload};

use crate::agent::{Input, RunQueue};
use crate::call::{CallId, Outcome, Question};
use crate::mcp::serve::McpServer;
use crate::mcp::serve::answer::answer;
use crate::mcp::serve::error::broken;
use crate::mcp::serve::tasks::kept::SavedRunTasks;
use crate::mcp::serve::tasks::outcome::{self, OutcomeQuestion};
use crate::mcp::serve::tasks::run_tasks::{Look, RunTasks, State};
use crate::mcp::serve::tasks::status::{MAX_ID_BYTES, described, failed, object, task_id, unknown};
use crate::mcp::serve::tasks::{Tasks, Ticket, question, task_runner};
use crate::runner::waiting::settle;
use crate::runner::{ApprovalDecision, ResumeError, Run, RunOptions, ServedRun, ServedRuns};
use crate::store::{PendingCall, StoreError};

/// The prefix of the keys of questions whether a call may run.
const APPROVAL: &str = "approval-";

/// The maximum number of answers that are checked in a message of another tenant's client. Each check reads the store.
/// The first answer that names a waiting call is reported.
const MAX_GUESSES: usize = 8;

impl Tasks {
    /// Describes a suspended call as a task.
    pub(in crate::mcp::serve) async fn task(&self, server: &McpServer, ticket: &Ticket) -> Result<Task, ErrorData> {
        let look = ticket.look(server).await?.ok_or_else(unknown)?;
        Ok(described(task_id(ticket.run_tasks.run.id(), &ticket.call).ok_or_else(unknown)?, &look))
    }

    /// Returns the present state of a task.
    pub(in crate::mcp::serve) async fn get(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
        objects_only: bool,
    ) -> Result<(DetailedTask, Run), ErrorData> {
        let ticket = self.find(server, party, id).await?;
        let look = ticket.look(server).await?.ok_or_else(unknown)?;
        let payload = match &look.state {
            State::Waits(pending) => TaskPayload::InputRequired {
                input_requests: match self.own_question(&ticket.run_tasks, &look) {
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
            State::Unsettled(..) => {
                let question = OutcomeQuestion::of(&server.0.runner, &look);
                let asked = question.and_then(|question| Some((question.key.clone(), question.request()?)));
                TaskPayload::InputRequired { input_requests: asked.into_iter().collect() }
            }
            State::Ended(result) if result.outcome() == Outcome::Cancelled => TaskPayload::Cancelled,
            State::Ended(result) | State::Settled(result) => {
                let offered = server.0.listing.get(&look.saved.name).ok_or_else(unknown)?;
                match answer(result, &look.saved.name, &offered, objects_only) {
                    Ok(result) => TaskPayload::Completed { result: object(&result)? },
                    Err(error) => TaskPayload::Failed { error: object(&error)? },
                }
            }
        };
        Ok((DetailedTask::new(described(id.to_owned(), &look), payload), ticket.run().clone()))
    }

    /// Ends the call of a task, if it has not ended.
    pub(in crate::mcp::serve) async fn cancel(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
    ) -> Result<(), ErrorData> {
        let ticket = self.find(server, party, id).await?;
        ticket.look(server).await?.ok_or_else(unknown)?;
        let Ticket { run_tasks, call } = ticket;
        run_tasks.cancel(&server.0.runner, &call).await.map_err(|error| failed(&error))
    }

    /// Handles answers to the questions of a task. Answers to unknown or closed questions are ignored. A late approval
    /// or denial is recorded, although it has no effect. Only one for each message is recorded, so that a client cannot
    /// fill the store.
    pub(in crate::mcp::serve) async fn update(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
        answers: InputResponses,
    ) -> Result<(), ErrorData> {
        let found = self.found(server, party.clone(), id).await.map_err(|error| failed(&error))?;
        let Some(ticket) = found else {
            self.refuse_of_stranger(server, &party, id, &answers).await;
            return Err(unknown());
        };
        let look = ticket.look(server).await?.ok_or_else(unknown)?;
        let Ticket { run_tasks, call } = ticket;
        let own = self.own_question(&run_tasks, &look);
        let (outcomes, answers): (InputResponses, InputResponses) =
            answers.into_iter().partition(|(key, _)| outcome::is_key(key));
        outcome::answer(server, &run_tasks, (&call, &look), &outcomes).await?;
        let mut has_late = false;
        for (key, answer) in answers {
            if own.as_ref() == Some(&key)
                && let State::Waits(pending) = &look.state
            {
                if let Some(decision) = question::decision(&answer) {
                    self.decide(server, &run_tasks, &pending.question(), decision).await?;
                }
                continue;
            }
            look.questions.answer(&key, &answer);
            // The key of an earlier question whether the call may run. An answer to it is recorded but decides nothing.
            if !has_late && let (Some(question), Some(decision)) = (question_of(&key), question::decision(&answer)) {
                has_late = true;
                self.decide(server, &run_tasks, &question, decision).await?;
            }
        }
        Ok(())
    }

    /// Reports to operators that a client of another tenant tried to decide on a call or to settle its outcome. The
    /// client only learns that it has no such task.
    pub(in crate::mcp::serve) async fn refuse_of_stranger(
        &self,
        server: &McpServer,
        party: &RunOptions,
        id: &str,
        answers: &InputResponses,
    ) {
        let Some(((run_id, call), decider)) = id.rsplit_once('.').zip(party.as_decider()) else { return };
        let decided = answers.iter().filter_map(|(key, answer)| Some((question_of(key)?, question::decision(answer)?)));
        let input = decided
            .take(MAX_GUESSES)
            .fold(Input::new(), |input, (question, decision)| input.decide(&question, decision, &decider));
        RunQueue::new(&server.0.runner).refuse_of_stranger(run_id, &input).await;
        if let Some(outcome) = outcome::stated(answers) {
            let by = (settle::kind(&outcome), &decider);
            settle::refuse_stranger(&server.0.runner, run_id, &CallId::new(call), by).await;
        }
    }

    /// Posts a decision on a call in the name of its principal. The gate refuses and records the decision if the
    /// principal may not decide on their own calls.
    pub(super) async fn decide(
        &self,
        server: &McpServer,
        run_tasks: &RunTasks,
        question: &Question,
        decision: ApprovalDecision,
    ) -> Result<(), ErrorData> {
        let Some(decider) = ServedRun(&run_tasks.run).decider().filter(|_| self.limits.asks) else {
            return Ok(());
        };
        // Decisions are always posted, so that this one is carried out even if this process ends now.
        let input = Input::new().decide(question, decision, &decider);
        let posted = Box::pin(RunQueue::new(&server.0.runner).post(
            run_tasks.run.id(),
            ServedRun(&run_tasks.run).tenant(),
            &input,
        ))
        .await;
        // A refusal is recorded, and the call still waits. Of two decisions on one question, the first takes effect.
        if let Err(error) = posted
            && !matches!(
                error,
                ResumeError::NotWaiting(_)
                    | ResumeError::NotAllowed(_)
                    | ResumeError::Mismatch(_)
                    | ResumeError::Invalid(_)
            )
        {
            tracing::warn!(
                run = run_tasks.run.id(),
                error = error.code(),
                "a decision of an MCP client was not stored"
            );
            return Err(broken());
        }
        run_tasks.changed.notify_one();
        Ok(())
    }

    /// Returns the key of the question whether the call may run. `None` if the call is not suspended, or the server may
    /// not ask its client. The key contains the [`Question`](crate::call::Question), so a late answer cannot decide on
    /// the next call of a graph, even in another process.
    pub(super) fn own_question(&self, run_tasks: &RunTasks, look: &Look) -> Option<String> {
        let State::Waits(pending) = &look.state else { return None };
        let may = self.may_ask(&run_tasks.run, pending, look.saved.asks);
        may.then(|| format!("{APPROVAL}{}-{}", look.asked + 1, pending.question()))
    }

    /// Whether the server may ask the client about a waiting call. `asks` is true if the client supports forms.
    pub(super) fn may_ask(&self, run: &Run, pending: &PendingCall, asks: bool) -> bool {
        let own = ServedRun(run).own_decider(pending.decided_tool());
        self.limits.asks && asks && own.is_some_and(|decider| !pending.needs_others_than(&decider))
    }

    /// Finds a task of a party in this process, or in the store, where an earlier process may have left it.
    pub(super) async fn find(&self, server: &McpServer, party: RunOptions, id: &str) -> Result<Ticket, ErrorData> {
        self.found(server, party, id).await.map_err(|error| failed(&error))?.ok_or_else(unknown)
    }

    /// Finds a task like [`find`](Self::find), but returns `None` if the party has no such task.
    pub(super) async fn found(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
    ) -> Result<Option<Ticket>, StoreError> {
        let is_id = id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
        let Some((run_id, call)) = id.rsplit_once('.').filter(|_| is_id) else { return Ok(None) };
        let call = CallId::new(call);
        let known = self.by_run().get(run_id).cloned();
        let runner = &server.0.runner;
        if let Some(run_tasks) = known {
            if !run_tasks.party.has_rights_of(&party) {
                return Ok(None);
            }
            if !run_tasks.has(&call) {
                run_tasks.learn(runner).await?;
            }
            return Ok(Some(Ticket { run_tasks, call }));
        }
        let Some(document) = ServedRuns(runner).document(run_id, &party).await? else { return Ok(None) };
        let saved = SavedRunTasks::parse(&document)?;
        if !saved.is_of(&party) {
            return Ok(None);
        }
        let run = match runner.restore(saved.run, party.clone().ends_with_process()).await {
            Ok(run) => run,
            Err(ResumeError::Store(error)) => return Err(error),
            Err(_) => return Ok(None),
        };
        let run_tasks = self.tasks_of(run, party);
        saved.tasks.into_iter().for_each(|(id, task)| run_tasks.add_stored(id, task));
        run_tasks.restored(document);
        let mut by_run = self.by_run();
        if let Some(faster) = by_run.get(run_id) {
            return Ok(faster
                .party
                .has_rights_of(&run_tasks.party)
                .then(|| Ticket { run_tasks: Arc::clone(faster), call }));
        }
        by_run.insert(run_id.to_owned(), Arc::clone(&run_tasks));
        drop(by_run);
        task_runner::start(server, &run_tasks);
        Ok(Some(Ticket { run_tasks, call }))
    }
}

/// Returns the approval question that is part of a key. `None` for the key of any other question.
fn question_of(key: &str) -> Option<Question> {
    key.strip_prefix(APPROVAL)?.split_once('-')?.1.parse().ok()
}
