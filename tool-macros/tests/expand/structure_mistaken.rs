/// Change fields of a task.
#[derive(Debug)]
struct UpdateTask<T> {
    /// Id of the task.
    task_id: T,
}
#[automatically_derived]
impl<T> ::tool_runtime::__private1::Named for UpdateTask<T> {
    fn visit<__V: ::tool_runtime::__private1::Visitor>(_: __V) -> __V::Answer {
        ::core::unreachable!()
    }
}
impl<T> UpdateTask<T> {
    fn definition() -> ::tool_runtime::__private1::Definition {
        ::core::unreachable!()
    }
}
::core::compile_error! {
    "the path `` has an empty segment; write names with single dots between them, for example `owner.name`"
}
::core::compile_error! {
    "a tool is one thing, not a family; remove the generic parameters"
}
