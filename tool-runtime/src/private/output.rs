//! What a function tool returns.

/// A `Result`, by whatever name.
#[diagnostic::on_unimplemented(
    message = "a tool returns `Result<T, E>`, not `{Self}`",
    label = "not a `Result`",
    note = "write `Result<{Self}, ToolError>`"
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
