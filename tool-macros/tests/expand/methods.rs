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
    async fn precondition(
        self,
        clock: &(dyn Clock),
        context: &ToolContext,
    ) -> Result<Precondition, TaskError> {
        Ok(Precondition::of("day", clock.now().day()).and("run", context.run_id()))
    }
}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private as __rt;
    fn __assertions() {
        __rt::assert_struct::<UpdateTask>();
    }
    #[automatically_derived]
    impl __rt::ToolComponent for UpdateTask {
        type Capabilities = (
            __rt::Cap<dyn TaskWriter>,
            __rt::Cap<dyn Clock>,
            __rt::Cap<ToolContext>,
        );
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
        async fn precondition(
            self,
            __capabilities: __rt::Capabilities,
        ) -> ::core::result::Result<__rt::Precondition, __rt::ToolError> {
            __rt::returned(
                <UpdateTask>::precondition(
                        self,
                        __capabilities.read::<dyn Clock>()?,
                        __capabilities.read::<ToolContext>()?,
                    )
                    .await,
            )
        }
    }
};
