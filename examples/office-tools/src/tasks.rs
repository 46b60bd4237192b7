//! Lists, creates, changes and deletes tasks. Reading and writing are separate capabilities.

use async_trait::async_trait;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_runtime::{ToolError, capability, tool};
use uuid::Uuid;

use crate::Failure;

/// Reads tasks.
#[capability(effect = read_only)]
#[async_trait]
pub trait TaskReader {
    /// Returns the tasks in a state, or all tasks, oldest first.
    async fn list(&self, state: Option<TaskState>) -> Result<Vec<Task>, Failure>;
}

/// Changes tasks.
#[capability(effect = state_change)]
#[async_trait]
pub trait TaskWriter {
    /// Creates a task with its id. A second call with the same id changes nothing.
    async fn create(&self, task: Task) -> Result<Task, Failure>;
    /// Changes the given fields and returns the task.
    async fn update(&self, id: Uuid, change: TaskChange) -> Result<Task, Failure>;
    /// Deletes a task.
    async fn delete(&self, id: Uuid) -> Result<(), Failure>;
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Not started.
    Todo,
    /// Started.
    InProgress,
    /// Waiting for something.
    Blocked,
    /// Finished.
    Done,
}

/// A task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Task {
    /// Its id.
    pub task_id: Uuid,
    /// Its title.
    pub title: String,
    /// Its state.
    pub state: TaskState,
    /// When it is due.
    pub due_date: Option<Date>,
    /// The owner; not shown to models.
    pub owner_email: String,
}

/// The fields of a task to change.
#[derive(Debug, Clone, Default)]
pub struct TaskChange {
    /// The new state.
    pub state: Option<TaskState>,
    /// The new title.
    pub title: Option<String>,
    /// The new due date.
    pub due_date: Option<Date>,
}

/// List tasks with their ids.
#[tool(
    name = "tasks__list_tasks",
    effect = read_only,
    redact = ["task_id", "title", "state", "due_date"],
    tags = ["tasks"],
    // Words that users write when they want this list.
    also = ["open", "overdue", "late", "to-do", "deadlines"]
)]
pub async fn list_tasks(
    tasks: &dyn TaskReader,
    /// Only tasks in this state.
    state: Option<TaskState>,
) -> Result<Vec<Task>, ToolError> {
    tasks.list(state).await.map_err(|failure| failure.of("task"))
}

/// Create a task.
#[tool(
    name = "tasks__create_task",
    effect = state_change,
    redact = ["task_id", "title", "state", "due_date"],
    summary = "Creates the task {title}[, due on {due_date}]",
    tags = ["tasks"],
    idempotent
)]
pub async fn create_task(
    tasks: &dyn TaskWriter,
    ctx: &tool_runtime::ToolContext,
    /// Its title.
    #[schemars(length(min = 1, max = 120))]
    title: String,
    /// When it is due.
    due_date: Option<Date>,
) -> Result<Task, ToolError> {
    // The id comes from the call, so that a retry of the call creates no second task.
    let task_id = Uuid::new_v5(&Uuid::NAMESPACE_OID, ctx.idempotency_key().as_bytes());
    let owner_email = ctx.principal().unwrap_or_default().to_owned();
    let task = Task { task_id, title, state: TaskState::Todo, due_date, owner_email };
    tasks.create(task).await.map_err(|failure| failure.of("task"))
}

/// Change one task. Needs the task's real id and at least one other field.
#[tool(
    name = "tasks__update_task",
    effect = state_change,
    redact = ["task_id", "title", "state", "due_date"],
    summary = "Changes the task {task_id}[, renames it to {title}][, moves it to {state}][, makes it due {due_date}]",
    tags = ["tasks"],
    require_any = [state, title, due_date],
    idempotent
)]
#[derive(Debug)]
pub struct UpdateTask {
    /// Id of the task, as `tasks__list_tasks` returns it.
    #[arg(evidence = "tasks__list_tasks")]
    task_id: Uuid,
    /// New state.
    state: Option<TaskState>,
    /// New title.
    #[schemars(length(min = 1, max = 120))]
    title: Option<String>,
    /// New due date.
    due_date: Option<Date>,
}

#[tool]
impl UpdateTask {
    async fn run(self, tasks: &dyn TaskWriter) -> Result<Task, ToolError> {
        let change = TaskChange { state: self.state, title: self.title, due_date: self.due_date };
        tasks.update(self.task_id, change).await.map_err(|failure| failure.of("task"))
    }
}

/// A deleted task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// The id it had.
    pub task_id: Uuid,
}

/// Delete one task for good.
#[tool(
    name = "tasks__delete_task",
    effect = state_change,
    redact = ["task_id"],
    summary = "Deletes the task {task_id} for good",
    tags = ["tasks"]
)]
pub async fn delete_task(
    tasks: &dyn TaskWriter,
    /// Id of the task, as `tasks__list_tasks` returns it.
    #[arg(evidence = "tasks__list_tasks")]
    task_id: Uuid,
) -> Result<Deleted, ToolError> {
    tasks.delete(task_id).await.map_err(|failure| failure.of("task"))?;
    Ok(Deleted { task_id })
}
