//! Calls whose tool asks questions while it runs, in protocol revisions without server requests. The first question
//! turns such a call into a task, and the client answers with `tasks/update`. A client that does not support tasks gets
//! the question as the answer to its request, and answers with its next request.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientCapabilities, ErrorData};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::call::{CallId, ToolExecResult};
use crate::capability::{Capabilities, Elicit};
use crate::mcp::serve::McpServer;
use crate::mcp::serve::client::{Quiet, fills_in_forms};
use crate::mcp::serve::error::broken;
use crate::mcp::serve::tasks::kept::SavedTask;
use crate::mcp::serve::tasks::question::{Asks, Questions};
use crate::mcp::serve::tasks::run_tasks::RunTasks;
use crate::mcp::serve::tasks::{Tasks, Ticket, task_id, task_runner};
use crate::runner::ServedRuns;
use crate::runner::{Run, RunOptions};

/// The maximum time for which the task of a running call can be queried. The call itself has other limits.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A call that runs in a separate tokio task, so that it can outlive its request.
pub(in crate::mcp::serve) struct Running {
    pub(in crate::mcp::serve) run: Run,
    pub(in crate::mcp::serve) party: RunOptions,
    pub(in crate::mcp::serve) call: CallId,
    /// The tool, by the name that the client knows.
    pub(in crate::mcp::serve) name: String,
    pub(in crate::mcp::serve) questions: Arc<Questions>,
    pub(in crate::mcp::serve) cancellation: CancellationToken,
    /// Stops the messages of the call.
    pub(in crate::mcp::serve) quiet: Quiet,
    pub(in crate::mcp::serve) ended: JoinHandle<ToolExecResult>,
}

/// The answer to a request.
pub(in crate::mcp::serve) enum Answered {
    Ended(ToolExecResult),
    Asks(Ticket),
}

/// Returns an empty set of questions for a client that can fill in forms. `None` for any other client.
pub(in crate::mcp::serve) fn questions(declared: &ClientCapabilities) -> Option<Arc<Questions>> {
    fills_in_forms(declared).then(Arc::default)
}

impl Running {
    /// Waits until a call ends or has a question.
    pub(in crate::mcp::serve) async fn answered(
        mut self,
        tasks: &Tasks,
        server: &McpServer,
        cancelled: &CancellationToken,
    ) -> Result<Answered, ErrorData> {
        let questions = Arc::clone(&self.questions);
        // If the client goes away, its call is cancelled, unless it has become a task, to which the client can return.
        let guard = self.cancellation.clone().drop_guard();
        let asks = tokio::select! {
            biased;
            ended = &mut self.ended => return ended.map(Answered::Ended).map_err(|_| broken()),
            () = cancelled.cancelled() => false,
            () = questions.asked_something() => true,
        };
        if asks {
            self = match Box::new(self).adopt(tasks, server) {
                Ok(ticket) => {
                    guard.disarm();
                    return Ok(Answered::Asks(ticket));
                }
                Err(running) => *running,
            };
            // No client can answer any more.
            self.questions.close();
        } else {
            self.cancellation.cancel();
        }
        self.ended.await.map(Answered::Ended).map_err(|_| broken())
    }

    /// Turns a running call into a task. Returns the call if there are too many tasks.
    fn adopt(self: Box<Self>, tasks: &Tasks, server: &McpServer) -> Result<Ticket, Box<Self>> {
        let now = ServedRuns(&server.0.runner).now();
        if task_id(self.run.id(), &self.call).is_none() {
            return Err(self);
        }
        let expires = now.saturating_add(LONGEST).unwrap_or(jiff::Timestamp::MAX);
        let saved =
            SavedTask { name: self.name.clone(), created: now, expires, asks: true, asked_as: None, answered: None };
        let (questions, cancellation) = (Arc::clone(&self.questions), self.cancellation.clone());
        let add = |run_tasks: &RunTasks| run_tasks.add(self.call.clone(), saved, questions, Some(cancellation));
        let Ok((run_tasks, is_new)) = tasks.run_tasks(&self.run, &self.party, add) else { return Err(self) };
        if is_new {
            task_runner::start(server, &run_tasks);
        }
        self.quiet.close();
        let ticket = Ticket { run_tasks: Arc::clone(&run_tasks), call: self.call.clone() };
        tokio::spawn(settle(server.clone(), run_tasks, self.call, self.ended));
        Ok(ticket)
    }
}

/// Stores the result of a call for its client.
async fn settle(server: McpServer, run_tasks: Arc<RunTasks>, call: CallId, ended: JoinHandle<ToolExecResult>) {
    match ended.await {
        Ok(result) => run_tasks.ended(&call, &result, ServedRuns(&server.0.runner).now()),
        // The call panicked; its record has the outcome.
        Err(_) => run_tasks.remove(&call),
    }
    run_tasks.changed.notify_one();
}

/// Adds the capability to ask the client questions.
pub(in crate::mcp::serve) fn asking(offers: Capabilities, questions: &Arc<Questions>, run: &Run) -> Capabilities {
    offers.with::<dyn Elicit>(Arc::new(Asks { questions: Arc::clone(questions), run: run.clone() }))
}
