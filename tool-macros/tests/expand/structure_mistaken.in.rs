/// Change fields of a task.
#[tool(name = "tasks__update_task", effect = state_change, redact = [""])]
#[derive(Debug)]
#[serde(rename_all = "camelCase")]
struct UpdateTask<T> {
    /// Id of the task.
    #[arg(sensitive)]
    #[serde(rename = "id")]
    task_id: T,
}
