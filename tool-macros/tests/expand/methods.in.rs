#[tool]
impl UpdateTask {
    const LIMIT: usize = 3;

    /// The title, without spaces around it.
    fn trimmed(&self) -> &str {
        self.title.trim()
    }

    pub async fn run(self, tasks: &dyn TaskWriter, call: &Call<Self>, clock: &(dyn Clock)) -> Result<Task, TaskError> {
        tasks.update(self.task_id, self.trimmed(), clock.now(), call.idempotency_key()).await
    }

    fn reconcile(self, call: &ToolContext, tasks: &dyn TaskWriter) -> Result<Reconciled<Task>, TaskError> {
        tasks.made(call.idempotency_key())
    }

    async fn precondition(self, clock: &(dyn Clock), context: &ToolContext) -> Result<Precondition, TaskError> {
        Ok(Precondition::of("day", clock.now().day()).and("run", context.run_id()))
    }
}
