#[allow(
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    clippy::unused_async
)]
impl UpdateTask {
    const LIMIT: usize = 3;
    /// The title, without spaces around it.
    fn trimmed(&self) -> &str {
        self.title.trim()
    }
    pub async fn run(
        self,
        tasks: &dyn TaskWriter,
        call: &Call<Self>,
        clock: &(dyn Clock),
    ) -> Result<Task, TaskError> {
        tasks
            .update(self.task_id, self.trimmed(), clock.now(), call.idempotency_key())
            .await
    }
    fn reconcile(
        self,
        call: &ToolContext,
        tasks: &dyn TaskWriter,
    ) -> Result<Reconciled<Task>, TaskError> {
        tasks.made(call.idempotency_key())
    }
}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private as __rt;
    #[automatically_derived]
    impl __rt::ToolComponent for UpdateTask {
        type Capabilities = (__rt::Cap<dyn TaskWriter>, __rt::Cap<dyn Clock>);
        type Output = <Result<Task, TaskError> as __rt::ToolReturn>::Output;
        async fn run(
            self,
            __held: Self::Capabilities,
            __call: &__rt::Call<Self>,
        ) -> ::core::result::Result<Self::Output, __rt::ToolError> {
            __rt::returned(<UpdateTask>::run(self, &*__held.0, __call, &*__held.1).await)
        }
        async fn reconcile(
            self,
            __held: Self::Capabilities,
            __call: &__rt::Call<Self>,
        ) -> ::core::result::Result<__rt::Reconciled<Self::Output>, __rt::ToolError> {
            __rt::returned(<UpdateTask>::reconcile(self, __call, &*__held.0))
        }
    }
};
