//! [`ToolComponent`]: what an author implements for a struct tool.

use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;

use crate::component::Call;
use crate::component::list::CapabilityList;
use crate::error::ToolError;

/// How a struct tool runs, what it returns and which capabilities it needs.
///
/// Hydration constructs the struct from validated arguments; the runner alone can make the [`Call`] that
/// [`run`](ToolComponent::run) asks for, so nothing else can run it.
#[diagnostic::on_unimplemented(
    message = "the tool `{Self}` does not say how it runs",
    label = "`ToolComponent` is not implemented",
    note = "write `impl ToolComponent for {Self} {{ type Capabilities = (); type Output = ..; async fn run(self, (): (), call: &Call<Self>) -> Result<Self::Output, ToolError> {{ .. }} }}`"
)]
pub trait ToolComponent: Sized + Send + 'static {
    /// A tuple of `Cap<dyn Capability>`; `()` for none.
    type Capabilities: CapabilityList;
    /// What the tool answers with, before redaction.
    type Output: ToolOutput;

    /// Runs the tool on its validated arguments.
    fn run(
        self,
        capabilities: Self::Capabilities,
        call: &Call<Self>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// What a tool may return: data that serialises and has a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a tool",
    label = "not serialisable with a schema",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it and for what it holds; secrets and connections never leave a tool"
)]
pub trait ToolOutput: Serialize + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + Send + 'static> ToolOutput for T {}
