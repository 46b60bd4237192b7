/// Change fields of a task.
#[tool(
    name = "tasks__update_task",
    effect = state_change,
    redact = ["task_id", "state"],
    require_any = [state, title],
    validate = UpdateTask::is_sane
)]
#[derive(Debug)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTask {
    /// Id of the task, as `tasks__list_tasks` returns it.
    #[arg(evidence = "tasks__list_tasks")]
    task_id: Uuid,
    /// New title; `null` removes it.
    #[schemars(length(min = 1, max = 120))]
    title: Option<Option<String>>,
    /// New state.
    #[arg(default = State::Open)]
    pub(crate) state: State,
}
