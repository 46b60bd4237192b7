#[tool(name = "tasks__update_task", crate = facade::tools)]
impl UpdateTask {
    async fn run<T>(&self, #[arg(sensitive)] title: String, tasks: &mut dyn TaskWriter) {
        tasks.update(title).await
    }
}
