#[derive(::tool_runtime::__private::Attributes)]
/// Change fields of a task.
#[derive(Debug)]
#[serde(rename_all = "camelCase")]
struct UpdateTask<T> {
    /// Id of the task.
    #[arg(sensitive)]
    #[serde(rename = "id")]
    task_id: T,
}
#[automatically_derived]
impl<T> ::tool_runtime::__private::Named for UpdateTask<T> {
    fn visit<__V: ::tool_runtime::__private::Visitor>(_: __V) -> __V::Answer {
        ::core::unreachable!()
    }
}
impl<T> UpdateTask<T> {
    fn definition() -> ::tool_runtime::__private::Definition {
        ::core::unreachable!()
    }
}
::core::compile_error! {
    "the path `` has an empty segment; write names with single dots between them, for example `owner.name`"
}
::core::compile_error! {
    "a tool cannot be generic: it needs one concrete schema; remove the generic parameters"
}
