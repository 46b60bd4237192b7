#[allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps,
    reason = "a tool owns its arguments, has as many as its schema, and returns a `Result`"
)]
/// Adds.
pub fn add(left: i64, right: i64) -> Result<i64, ToolError> {
    Ok(left + right)
}
#[doc(hidden)]
pub enum add {}
#[automatically_derived]
impl ::tool_runtime::__private1::Named for add {
    fn visit<V: ::tool_runtime::__private1::Visitor>(_: V) -> V::Answer {
        ::core::unreachable!()
    }
}
::core::compile_error! {
    "unknown effect `readonly`; did you mean `read_only`?"
}
::core::compile_error! {
    "missing `redact`; list what of the output may be shown, for example `redact = [\"id\"]`, or `redact = []` for nothing"
}
::core::compile_error! {
    "tool name `add` has no namespace; write `core__add`"
}
::core::compile_error! {
    "missing doc comment on the argument `right`, which the model fills in; what the runtime lends is borrowed: `&dyn Trait`"
}
