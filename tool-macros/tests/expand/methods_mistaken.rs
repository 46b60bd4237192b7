impl UpdateTask {
    async fn run<T>(&self, title: String, tasks: &mut dyn TaskWriter) {
        tasks.update(title).await
    }
}
#[automatically_derived]
impl facade::tools::__private::ToolComponent for UpdateTask {
    type Capabilities = ();
    type Output = ();
    async fn run(
        self,
        (): (),
        _: &facade::tools::__private::Call<Self>,
    ) -> ::core::result::Result<(), facade::tools::__private::ToolError> {
        ::core::unreachable!()
    }
}
::core::compile_error! {
    "`name` belongs on the struct; an `impl` takes `#[tool]` alone"
}
::core::compile_error! {
    "the runtime calls this method with one type; remove the generic parameters"
}
::core::compile_error! {
    "each call has its own arguments; write `self`"
}
::core::compile_error! {
    "an argument of the model is a field of the struct; a parameter borrows: `&dyn Trait`, `&Connection<dyn Trait>` or `&Call<Self>`"
}
::core::compile_error! {
    "several calls share an injected value; write `&` for `&mut`"
}
::core::compile_error! {
    "a tool returns `Result<T, E>`; write `-> Result<(), ToolError>` for one without an output"
}
