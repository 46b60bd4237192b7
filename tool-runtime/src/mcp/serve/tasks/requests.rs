//! The requests of clients about a task: its state, and its cancellation.

use rmcp::model::{DetailedTask, ErrorData, InputRequests, Task, TaskPayload};

use crate::call::Outcome;
use crate::mcp::serve::McpServer;
use crate::mcp::serve::answer::answer;
use crate::mcp::serve::tasks::run_tasks::State;
use crate::mcp::serve::tasks::status::{described, failed, object, task_id, unknown};
use crate::mcp::serve::tasks::{Tasks, Ticket, question};
use crate::runner::{Run, RunOptions};

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
        let (run_tasks, call) = self.find(server, party, id).await?;
        let look =
            run_tasks.look(&server.0.runner, &call).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
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
    pub(in crate::mcp::serve) async fn cancel(
        &self,
        server: &McpServer,
        party: RunOptions,
        id: &str,
    ) -> Result<(), ErrorData> {
        let (run_tasks, call) = self.find(server, party, id).await?;
        run_tasks.look(&server.0.runner, &call).await.map_err(|error| failed(&error))?.ok_or_else(unknown)?;
        run_tasks.cancel(&server.0.runner, &call).await.map_err(|error| failed(&error))
    }
}
