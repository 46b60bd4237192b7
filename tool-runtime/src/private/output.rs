//! The return type of a function tool.

/// A `Result`, possibly under an alias.
#[diagnostic::on_unimplemented(
    message = "a tool returns `Result<T, E>`, not `{Self}`",
    label = "not a `Result`",
    note = "write `Result<{Self}, ToolError>`"
)]
pub trait ToolReturn {
    /// The output.
    type Output;
    /// The error.
    type Error;

    /// Converts into a `Result`.
    ///
    /// # Errors
    /// The error of the tool.
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
