/// Adds.
#[allow(
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps
)]
pub fn add(left: i64, right: i64) -> Result<i64, ToolError> {
    Ok(left + right)
}
#[doc(hidden)]
pub enum add {}
#[automatically_derived]
impl ::tool_runtime::__private::Named for add {
    fn visit<__V: ::tool_runtime::__private::Visitor>(_: __V) -> __V::Answer {
        ::core::unreachable!()
    }
}
::core::compile_error! {
    "unknown effect `readonly`; did you mean `read_only`?"
}
::core::compile_error! {
    "missing `redact`; list the paths of the output that may be shown, for example `redact = [\"id\"]`, or `redact = []` to show nothing"
}
::core::compile_error! {
    "tool name `add` has no namespace; write `core__add`"
}
::core::compile_error! {
    "missing doc comment on the argument `right`, which the model fills in; injected values are borrowed: `&dyn Trait`"
}
