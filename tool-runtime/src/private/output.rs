//! What a function tool returns, taken apart.

use std::marker::PhantomData;

use crate::__private1::ask::Described;
use crate::error::{IntoToolError, ToolError};

/// A `Result`, by whatever name. It has no bounds on its parts: those are asked where each part stands.
#[diagnostic::on_unimplemented(
    message = "a tool returns `Result<T, E>`, not `{Self}`",
    label = "not a `Result`",
    note = "write `Result<{Self}, ToolError>`; a tool that cannot fail today may be refused a capability tomorrow"
)]
pub trait ToolReturn {
    /// What the tool answers with.
    type Output;
    /// What it fails with.
    type Error;

    /// The same, as a `Result`.
    fn into_result(self) -> Result<Self::Output, Self::Error>;
}

#[diagnostic::do_not_recommend]
impl<T, E> ToolReturn for Result<T, E> {
    type Output = T;
    type Error = E;

    fn into_result(self) -> Self {
        self
    }
}

/// Converts the error of what a function returned.
pub fn finish<R>(returned: R) -> Result<R::Output, ToolError>
where
    R: ToolReturn,
    R::Error: IntoToolError,
{
    returned.into_result().map_err(IntoToolError::into_tool_error)
}

/// Finds out whether an output is a bare `serde_json::Value`: the inherent method of that one wins over the
/// trait's, which all others have.
#[derive(Debug)]
pub struct OutputProbe<T>(PhantomData<fn() -> T>);

impl<T> OutputProbe<T> {
    /// The probe.
    pub const NEW: Self = Self(PhantomData);
}

impl OutputProbe<serde_json::Value> {
    /// A schema that says nothing.
    #[must_use]
    pub const fn probe(&self) -> SaysNothing {
        SaysNothing
    }
}

/// Every other output.
pub trait AnyOutput {
    /// A schema that says something.
    fn probe(&self) -> SaysSomething {
        SaysSomething
    }
}

impl<T> AnyOutput for OutputProbe<T> {}

/// The answer for a bare `serde_json::Value`.
#[derive(Debug)]
pub struct SaysNothing;

/// The answer for everything else.
#[derive(Debug)]
pub struct SaysSomething;

impl Described for SaysSomething {}
